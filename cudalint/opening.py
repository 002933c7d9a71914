"""What a host asks for on top of the settings of a project: options of a command, arguments of a program."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from cudalint import caching, config
from cudalint.caching import Cache
from cudalint.config import Config, ConfigError, Given
from cudalint.policy.selection import Layer, Selection
from cudalint.session import Session
from cudalint.structs import Frozen, replace

Path = str | os.PathLike[str]
# How a host spells an option to whoever gave it.
Spelling = Callable[[str], str]
# What goes on while somebody waits for what these words say.
Waiting = Callable[[str], AbstractContextManager[object]]


class Options(Frozen):
    """Settings of a run; ``None`` and nothing mean that the project's settings decide.

    Attributes:
        config: a TOML file whose settings hold instead of those of the nearest ``pyproject.toml``.
        isolated: read no settings.
        select: codes or prefixes of the rules that are shown, instead of what the settings say.
        extend_select: rules that are shown besides.
        ignore: rules that are hidden, besides.
        per_file_ignores: ``PATTERN:CODE``, rules that are hidden in some files.
        exclude: patterns of what is not read, instead of the defaults.
        extend_exclude: patterns of what is not read, besides.
        force_exclude: whether what is excluded is left out also where it is named.
        target_version: the Python that the programs run on: ``py312``, ``3.12`` or ``3.10-3.13``.
        platform: ``linux``, ``darwin`` or ``win32``.
        fail_on: the least severity that fails a run: ``note``, ``warning`` or ``error``.
        baseline: a file of known findings; an empty name means none.
        since: a git revision; what it had is left out.
        jobs: how many processes a long run may use; None for as many as there are cores, up to 8. They are fresh
            interpreters that import cudalint and nothing of yours, so a script needs no main guard for them.
        cache: whether results are kept between runs.
        cache_dir: the folder for that, instead of ``.cudalint_cache`` in the project.
        hide_nothing: show the findings of all rules in all files: for hosts that select by themselves.
    """

    config: Path | None = None
    isolated: bool = False
    select: Sequence[str] | None = None
    extend_select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    per_file_ignores: Sequence[str] = ()
    exclude: Sequence[str] = ()
    extend_exclude: Sequence[str] = ()
    force_exclude: bool | None = None
    target_version: str | None = None
    platform: str | None = None
    fail_on: str | None = None
    baseline: Path | None = None
    since: str | None = None
    jobs: int | None = None
    cache: bool = False
    cache_dir: Path | None = None
    hide_nothing: bool = False

    def configuration(self, paths: Iterable[str], spelled: Spelling = str) -> Config:
        """What holds for some paths: the settings of their project with these on top.

        Raises:
            ConfigError: for settings, of either kind, that cannot be used.
        """
        self.require_sense(spelled)
        file = None if self.config is None else os.fspath(self.config)
        found = config.load(paths, file, isolated=self.isolated)
        found = config.on_target(config.on_top(found, self._given(spelled)), self.target_version, self.platform)
        if self.hide_nothing:
            found = replace(found, selection=Selection(), per_file_ignores=())
        return replace(
            found,
            fail_on=found.fail_on if self.fail_on is None else config.parse_severity(self.fail_on),
            force_exclude=found.force_exclude if self.force_exclude is None else self.force_exclude,
            baseline=self._baseline(found),
            jobs=self.jobs,
        )

    def require_sense(self, spelled: Spelling = str) -> None:
        """Refuse what contradicts itself; raises ``ConfigError``."""
        if self.isolated and self.config is not None:
            named, forbids = spelled("config"), spelled("isolated")
            raise ConfigError(f"{named} names settings and {forbids} forbids them: leave out one")

    def _given(self, spelled: Spelling) -> Given:
        layer = Layer(
            select=self._selected(spelled("select")),
            extend_select=config.parse_selectors(spelled("extend-select"), self.extend_select),
            ignore=config.parse_selectors(spelled("ignore"), self.ignore),
        )
        return Given(
            layer,
            _ignores(spelled("per-file-ignores"), self.per_file_ignores),
            config.parse_patterns(spelled("exclude"), map(_anchored, self.exclude)),
            config.parse_patterns(spelled("extend-exclude"), map(_anchored, self.extend_exclude)),
        )

    def _selected(self, name: str) -> tuple[str, ...] | None:
        if self.select is None:
            return None
        selected = config.parse_selectors(name, self.select)
        if not selected:
            raise ConfigError(f"{name} names no rule")
        return selected

    def _baseline(self, found: Config) -> str | None:
        if self.baseline is None:
            return found.baseline
        named = os.fspath(self.baseline)
        return os.path.abspath(named) if named else None


class Opened(Frozen):
    """A session as it was asked for, with its configuration and cache; ``warnings`` are about what was known before."""

    config: Config
    session: Session
    cache: Cache
    warnings: tuple[str, ...] = ()


def opened(
    paths: Iterable[str],
    options: Options,
    *,
    unsaved: Mapping[str, bytes] | None = None,
    spelled: Spelling = str,
    waiting: Waiting = lambda words: nullcontext(),
) -> Opened:
    """A session over some paths.

    Args:
        paths: whose project's settings hold.
        options: what is asked for on top of them.
        unsaved: bytes by absolute path that stand for what is on the disk.
        spelled: how the host spells an option.
        waiting: is entered while a revision is checked.

    Raises:
        ConfigError: for settings, a cache or a revision that cannot be used.
    """
    paths = tuple(paths)
    found = options.configuration(paths, spelled)
    directory = None if options.cache_dir is None else os.fspath(options.cache_dir)
    cache = caching.opened(found, directory, wanted=options.cache)
    if options.since is None:
        return Opened(found, Session(found, cache.store, unsaved=unsaved), cache)
    from cudalint.history.since import before  # only here: it runs git

    with waiting(f"checking {options.since}"):
        known = before(found, cache.store, options.since, paths)
    return Opened(found, Session(found, cache.store, known.known, unsaved), cache, known.warnings)


def _ignores(name: str, pairs: Iterable[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """``PATTERN:CODE`` as many times as there are codes."""
    found = []
    for pair in pairs:
        pattern, _, code = pair.rpartition(":")
        if not pattern.strip():
            raise ConfigError(f"{name}: expected PATTERN:CODE, not {pair!r}")
        (pattern,) = config.parse_patterns(name, [_anchored(pattern.strip())])
        found.append((pattern, config.parse_selectors(name, [code])))
    return tuple(found)


def _anchored(pattern: str) -> str:
    """A pattern that a host was given: one with a slash counts from the current folder."""
    return os.path.join(os.getcwd(), pattern.removeprefix("./")) if "/" in pattern.rstrip("/") else pattern
