"""``python -m cudalint``, and the console script."""

import sys

from cudalint.module_path import without_the_current_folder


def main() -> int:
    """Run cudalint; nothing is imported from the current folder, which may be what is checked."""
    sys.path[:] = without_the_current_folder(sys.path)
    from cudalint.garbage import collected_rarely, let_go

    with collected_rarely():
        from cudalint.hosts import cli

        code = cli.main()
    let_go()
    return code


if __name__ == "__main__":
    sys.exit(main())
