"""``cudalint check``: findings, and repairs of them."""

from __future__ import annotations

import click

from cudalint.config import FAIL_ON
from cudalint.hosts import checks
from cudalint.hosts.colours import Color
from cudalint.hosts.commands import options
from cudalint.hosts.commands.words import files, one_of, require_format, require_one, selectors, split
from cudalint.hosts.printing import Printing
from cudalint.opening import Options
from cudalint.report.render import OutputFormat

_FORMATS = tuple(output_format.value for output_format in OutputFormat)


class _Check(click.Command):
    """Takes ``--add-noqa`` with and without a reason: only what follows ``=`` is one, never the path after it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        given = ["--add-noqa=" if argument == "--add-noqa" else argument for argument in args[:end]]
        return super().parse_args(ctx, given + args[end:])


@click.command(cls=_Check, short_help="Find what fails or costs, and repair it.")
@click.argument("paths", nargs=-1, shell_complete=files)
@click.option(
    "--select",
    multiple=True,
    metavar="CODES",
    shell_complete=selectors,
    help="Rules to show: codes or prefixes, comma-separated.",
)
@click.option(
    "--extend-select",
    multiple=True,
    metavar="CODES",
    shell_complete=selectors,
    help="Rules to show besides the selected ones.",
)
@click.option("--ignore", multiple=True, metavar="CODES", shell_complete=selectors, help="Rules to hide.")
@click.option("--per-file-ignores", multiple=True, metavar="PATTERN:CODE", help="Rules to hide in some files.")
@click.option("--exclude", multiple=True, metavar="PATTERNS", help="What not to read, instead of the defaults.")
@click.option("--extend-exclude", multiple=True, metavar="PATTERNS", help="What not to read besides.")
@click.option("--force-exclude/--no-force-exclude", default=None, help="Leave out what is excluded also where named.")
@options.config_file
@options.isolated
@options.target_version
@options.platform
@click.option(
    "--fail-on",
    metavar="SEVERITY",
    shell_complete=one_of(*FAIL_ON),
    help="Least severity that makes the exit code 1: note, warning, error.",
)
@options.output_format(_FORMATS, "full")
@options.color
@options.output_file("the report")
@click.option("-q", "--quiet", is_flag=True, help="Print findings and errors, and nothing else.")
@click.option("-w", "--watch", is_flag=True, help="Check again whenever a file changes, until Ctrl-C.")
@click.option("--show-files", is_flag=True, help="List the files that would be checked.")
@click.option(
    "--stdin-filename", metavar="PATH", shell_complete=files, help="Name of the file that is read from standard input."
)
@click.option("--statistics", is_flag=True, help="Count the findings of each rule instead of listing them.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 also when there are findings.")
@click.option("--exit-non-zero-on-fix", is_flag=True, help="Exit with 1 also when all that was found was repaired.")
@options.baseline
@click.option(
    "--write-baseline",
    metavar="FILE",
    shell_complete=files,
    help="Put all findings into this file instead of reporting them.",
)
@click.option("--prune-baseline", is_flag=True, help="Take out of the baseline what is not found any more.")
@click.option("--since", metavar="REV", help="Report only what this git revision did not have.")
@click.option("--fix", is_flag=True, help="Repair what is safe to repair, and report the rest.")
@click.option("--unsafe-fixes", is_flag=True, help="Count repairs that are not proven safe among those to make.")
@click.option("--diff", is_flag=True, help="Print the repairs as a patch instead of making them.")
@click.option("--fix-only", is_flag=True, help="Repair, and report nothing of the rest.")
@click.option("--add-noqa", metavar="[=REASON]", help="Silence all findings by comments; a reason is added to each.")
@click.option("-v", "--verbose", is_flag=True, help="Say what was read and parsed, and print internal errors.")
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    envvar="CUDALINT_JOBS",
    metavar="N",
    help="Processes that a long run may use (default: one for each core from four on, up to 8).",
)
@options.cache_dir
@options.no_cache
def check(
    paths: tuple[str, ...],
    select: tuple[str, ...],
    extend_select: tuple[str, ...],
    ignore: tuple[str, ...],
    per_file_ignores: tuple[str, ...],
    exclude: tuple[str, ...],
    extend_exclude: tuple[str, ...],
    force_exclude: bool | None,
    config_file: str | None,
    isolated: bool,
    target_version: str | None,
    platform: str | None,
    fail_on: str | None,
    output_format: str,
    color: str,
    output_file: str | None,
    quiet: bool,
    watch: bool,
    show_files: bool,
    stdin_filename: str | None,
    statistics: bool,
    exit_zero: bool,
    exit_non_zero_on_fix: bool,
    baseline: str | None,
    write_baseline: str | None,
    prune_baseline: bool,
    since: str | None,
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
    fix_only: bool,
    add_noqa: str | None,
    verbose: bool,
    jobs: int | None,
    cache_dir: str | None,
    no_cache: bool,
) -> int:
    """Check files and directories (default: the current one); - reads standard input."""
    require_format(output_format, _FORMATS)
    settings = Options(
        config=config_file,
        isolated=isolated,
        select=split(select) or None,
        extend_select=split(extend_select),
        ignore=split(ignore),
        per_file_ignores=split(per_file_ignores),
        exclude=split(exclude),
        extend_exclude=split(extend_exclude),
        force_exclude=force_exclude,
        target_version=target_version,
        platform=platform,
        fail_on=fail_on,
        baseline=baseline,
        since=since,
        jobs=jobs,
        cache=not no_cache,
        cache_dir=cache_dir,
    )
    printing = Printing(
        output_format=OutputFormat(output_format),
        output_file=output_file,
        color=require_one(Color, "--color", color),
        statistics=statistics,
        quiet=quiet,
        verbose=verbose,
        unsafe_fixes=unsafe_fixes,
    )
    wanted = checks.CheckOptions(
        settings=settings,
        printing=printing,
        stdin_filename=stdin_filename,
        exit_zero=exit_zero,
        exit_non_zero_on_fix=exit_non_zero_on_fix,
        prune_baseline=prune_baseline,
    )
    repairs, silences, accepts = fix or fix_only or diff, add_noqa is not None, write_baseline is not None
    if since is not None and (accepts or prune_baseline):
        raise click.UsageError("a baseline is about the whole project: leave out --since")
    if silences and (repairs or accepts):
        raise click.UsageError("--add-noqa silences findings: leave out --fix, --diff and --write-baseline")
    if watch and (repairs or show_files or silences or accepts):
        raise click.UsageError("--watch checks: leave out what repairs, silences, lists or keeps")
    if statistics and not printing.output_format.shows_counts:
        raise click.UsageError(f"counts are shown as text or json: leave out --output-format {output_format}")
    if show_files:
        return checks.show_files(paths, wanted)
    if write_baseline is not None:
        return checks.write_baseline(paths, wanted, write_baseline)
    if add_noqa is not None:
        return checks.add_noqa(paths, wanted, add_noqa)
    if diff:
        return checks.show_patch(paths, wanted)
    if fix or fix_only:
        return checks.fix(paths, wanted, quiet=fix_only)
    return checks.watch(paths, wanted) if watch else checks.check(paths, wanted)
