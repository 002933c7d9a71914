"""``python -m cudalint``, and the console script."""

import os
import sys


def main() -> int:
    """Run cudalint; nothing is imported from the current folder, which may be what is checked."""
    _leave_out_the_current_folder()
    from cudalint.hosts import cli

    return cli.main()


def _leave_out_the_current_folder() -> None:
    """``python -m`` puts it first on the path, and an empty element of PYTHONPATH anywhere."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # it was removed: nothing is found in it
        return
    sys.path[:] = [place for place in sys.path if os.path.realpath(place or here) != here]


if __name__ == "__main__":
    sys.exit(main())
