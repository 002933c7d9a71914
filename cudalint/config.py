"""Configuration: ``[tool.cudalint]`` of the nearest pyproject.toml, checked key by key."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, TypeAlias, TypeVar, cast, get_args

from cudalint import disk, rules, siblings
from cudalint.discovery import PROJECT_FILE, Exclusion
from cudalint.finding import Severity
from cudalint.limits import (
    DEFAULT,
    MOST_CONTEXT_FILES,
    MOST_CONTEXT_SIZE,
    MOST_DEPTH,
    MOST_FILE_SIZE,
    MOST_SECONDS,
    MOST_STEPS,
    Limits,
)
from cudalint.policy.globs import BadPattern, Globs
from cudalint.policy.selection import ALL, Layer, Selection, is_selector
from cudalint.project import deployments
from cudalint.structs import Frozen, field, replace

Version: TypeAlias = tuple[int, int]
Versions: TypeAlias = tuple[Version, Version]
Platform: TypeAlias = Literal["linux", "darwin", "win32"]

_Value = TypeVar("_Value")

PLATFORMS: tuple[str, ...] = get_args(Platform)
FAIL_ON: tuple[str, ...] = tuple(severity.value for severity in Severity)
DEFAULT_VERSIONS: Versions = ((3, 10), (3, 13))
DEFAULT_EXCLUDE = (
    ".bzr",
    ".cudalint_cache",
    ".direnv",
    ".eggs",
    ".git",
    ".git-rewrite",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pants.d",
    ".pyenv",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    ".vscode",
    "__pycache__",
    "__pypackages__",
    "_build",
    "buck-out",
    "build",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
)
# What an open requires-python reaches up to.
_NEWEST: Version = (3, 14)
# The last version that a program may be said to run on: taken to start processes as the newest one does.
LAST_VERSION: Version = (3, 16)
_VERSION = re.compile(r"(?:py3|3\.)(\d{1,2})", re.ASCII)
_CLAUSE = re.compile(r"\s*(>=|~=|===?|!=|>|<=|<)\s*v?(\d+)(?:\.(\d+)(?:\.(\d+))?)?(?:[.\-_+]?[\w*]+)*\s*", re.ASCII)


def _check_models(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The model files, if they can be used."""
    if not paths:
        return ()
    # Only here, so that a run without models of its own reads no model before it has to.
    from cudalint.models.library import load as load_models
    from cudalint.models.schema import ModelError

    try:
        load_models(paths)
    except ModelError as error:
        raise ConfigError(f"models: {error}") from None
    return paths


class ConfigError(Exception):
    """The configuration says something that cudalint cannot follow; the text is one clear line."""


class Given(Frozen):
    """What the options of a run say on top of every configuration file: rules, and patterns for files."""

    layer: Layer = field(default_factory=Layer)
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = ()
    extend_exclude: tuple[str, ...] = ()


class Config(Frozen):
    """How a run is done. ``source`` is the pyproject.toml that was read, ``root`` the project's directory."""

    root: str | None = None
    source: str | None = None
    selection: Selection = field(default_factory=Selection)
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    # Those of ``exclude`` that were given in addition, and stay when the others are replaced.
    extend_exclude: tuple[str, ...] = ()
    # The patterns of ``exclude`` that leave packages of their name alone.
    lenient: tuple[str, ...] = DEFAULT_EXCLUDE
    force_exclude: bool = False
    target_versions: Versions = DEFAULT_VERSIONS
    platform: Platform = "linux"
    fail_on: Severity = Severity.WARNING
    models: tuple[str, ...] = ()
    # Folders outside of the project whose modules its programs import, as PYTHONPATH would name them.
    extra_paths: tuple[str, ...] = ()
    extend_safe_fixes: tuple[str, ...] = ()
    extend_unsafe_fixes: tuple[str, ...] = ()
    cache_dir: str | None = None
    baseline: str | None = None
    # Selectors, each with the severity that findings of their rules have here.
    severity: tuple[tuple[str, Severity], ...] = ()
    # How large files may be that are looked at, and how far and how long they are.
    limits: Limits = DEFAULT
    # Whether a nearer pyproject.toml counts for the files below it, and for the Pythons that programs there run on.
    by_folder: bool = True
    pythons_by_folder: bool = False
    given: Given = field(default_factory=Given)
    # How many processes may run entries; None for as many as there are cores. No result depends on it.
    jobs: int | None = None

    @property
    def exclusion(self) -> Exclusion:
        """What is not read."""
        return Exclusion(self.exclude, self.lenient, self.force_exclude)

    def as_measured(self) -> Config:
        """The configuration for who compares with hardware: of the Python that runs, which decides the start method.

        What a project grades or accepts by its own judgement is left out.
        """
        here = (sys.version_info.major, sys.version_info.minor)
        return replace(self, severity=(), baseline=None, target_versions=(here, here), pythons_by_folder=False)


class Pythons(Frozen):
    """The Pythons that programs below a folder run on, and whether ``target-version`` said so."""

    versions: Versions = DEFAULT_VERSIONS
    is_chosen: bool = False

    def below(self, target: Versions | None, required: Versions | None) -> Pythons:
        """What holds below a folder further in, whose pyproject.toml says this.

        What was chosen for all of a repository is narrowed by what one of its projects requires, unless that is
        another Python altogether.
        """
        if target is not None:
            return Pythons(target, is_chosen=True)
        if required is None:
            return self
        lowest, highest = max(self.versions[0], required[0]), min(self.versions[1], required[1])
        return Pythons((lowest, highest), is_chosen=True) if self.is_chosen and lowest <= highest else Pythons(required)


def load(paths: Iterable[str], file: str | None = None, *, isolated: bool = False) -> Config:
    """The configuration for a run over ``paths``, from the directory that they share upwards.

    The nearest pyproject.toml with a ``[tool.cudalint]`` table counts; where none has one, the nearest
    still says where the project begins and which Python it requires. ``file`` is read instead: another pyproject.toml,
    or a file that holds the keys themselves. ``isolated`` says that nothing is read.
    """
    start = _shared_directory(paths)
    if isolated:
        return Config(root=_root(start), by_folder=False)
    found = replace(_nearest(start), pythons_by_folder=True) if file is None else _from_file(file, start)
    return _with_dependencies(found)


def _nearest(start: str) -> Config:
    inner: list[tuple[str, Mapping[str, object]]] = []
    for path in _upwards(start, PROJECT_FILE):
        document = _read_toml(path)
        if "cudalint" in _table(document, "tool"):
            return _with_pythons_of(_parse(path, document), document, [said for _, said in reversed(inner)])
        inner.append((path, document))
    return _parse(*inner[0]) if inner else Config(root=_root(start))


def _with_pythons_of(found: Config, document: Mapping[str, object], inner: Iterable[Mapping[str, object]]) -> Config:
    """A configuration with the Pythons that files further in require, which have no settings."""
    is_chosen = "target-version" in _table(_table(document, "tool"), "cudalint")
    pythons = Pythons(found.target_versions, is_chosen)
    for said in inner:
        pythons = pythons.below(None, _requirement(said))
    return replace(found, target_versions=pythons.versions)


def _with_dependencies(found: Config) -> Config:
    """A configuration whose context also is the source of what the project requires, where that lies in no release."""
    if found.root is None:
        return found
    return replace(found, extra_paths=tuple(dict.fromkeys((*found.extra_paths, *siblings.source_roots(found.root)))))


def in_folder(path: str) -> Config | None:
    """What a pyproject.toml below the run's says of its files; None where it has no settings."""
    document = _read_toml(path)
    return _parse(path, document) if "cudalint" in _table(document, "tool") else None


def pythons_in(path: str, above: Pythons) -> Pythons:
    """The Pythons that programs run on below the folder of a pyproject.toml, where those ``above`` hold around it."""
    document = _read_toml(path)
    chosen = _table(_table(document, "tool"), "cudalint").get("target-version")
    return above.below(parse_versions(chosen) if isinstance(chosen, str) else None, _requirement(document))


def _requirement(document: Mapping[str, object]) -> Versions | None:
    """The Pythons that a project requires; None where it says nothing that can be understood."""
    requires = _table(document, "project").get("requires-python")
    if not isinstance(requires, str):
        return None
    try:
        return _required_versions(requires)
    except ConfigError:
        return None  # nothing of cudalint's stands in that file


def on_top(found: Config, given: Given) -> Config:
    """A configuration with what the options of a run say."""
    kept = (*given.exclude, *found.extend_exclude) if given.exclude else found.exclude
    lenient = () if given.exclude else tuple(name for name in found.lenient if name not in given.extend_exclude)
    return replace(
        found,
        selection=found.selection.below(given.layer),
        per_file_ignores=given.per_file_ignores or found.per_file_ignores,
        exclude=(*kept, *given.extend_exclude),
        lenient=lenient,
        given=given,
    )


def _from_file(file: str, start: str) -> Config:
    """What a named file says; the project stays where it is, and models count from the file."""
    path = os.path.abspath(file)
    document = _read_toml(path)
    is_project = os.path.basename(path) == PROJECT_FILE or "cudalint" in _table(document, "tool")
    found = _parse(path, document if is_project else {"tool": {"cudalint": document}})
    return replace(found, root=_root(start), by_folder=False)


def _root(start: str) -> str | None:
    """Where the project begins: at the nearest pyproject.toml, or the repository; else where files start its server.

    What was unpacked from an archive has no repository, but may have what installs it, or settings of pytest.
    """
    marks = (next(_upwards(start, mark), None) for mark in (PROJECT_FILE, ".git", "setup.py", "pytest.ini"))
    marked = next((os.path.dirname(mark) for mark in marks if mark), None)
    return start if marked is None and deployments.servers(start) else marked


def parse_versions(text: str) -> Versions:
    """``py310``, ``3.12``, or a range such as ``3.10-3.13``."""
    ends = [_VERSION.fullmatch(part.strip()) for part in text.split("-")]
    found: list[Version] = [(3, int(match.group(1))) for match in ends if match is not None]
    if len(found) != len(ends) or len(found) > 2 or found[0] > found[-1]:
        raise ConfigError(f"unknown target-version {text!r}: expected py310, 3.12 or a range such as 3.10-3.13")
    if found[-1] > LAST_VERSION:
        raise ConfigError(f"unknown target-version {text!r}: the last Python that is known is {_dotted(LAST_VERSION)}")
    return found[0], found[-1]


def parse_platform(text: str) -> Platform:
    """One of the platforms that start processes differently."""
    _expect_one_of("platform", text, PLATFORMS)
    return cast(Platform, text)


def on_target(found: Config, target_version: str | None, platform: str | None) -> Config:
    """A configuration with another Python and platform, where these are named."""
    return replace(
        found,
        target_versions=found.target_versions if target_version is None else parse_versions(target_version),
        pythons_by_folder=found.pythons_by_folder and target_version is None,
        platform=found.platform if platform is None else parse_platform(platform),
    )


def parse_severity(text: str) -> Severity:
    """``note``, ``warning`` or ``error``."""
    _expect_one_of("fail-on", text, FAIL_ON)
    return Severity(text)


def parse_selectors(option: str, texts: Iterable[str]) -> tuple[str, ...]:
    """Rule codes or prefixes of them."""
    given = tuple(text.strip() for text in texts if text.strip())
    for text in given:
        if not is_selector(text.upper(), rules.codes()):
            hint = _code_of(text) or nearest(text.upper(), (ALL, *rules.codes()))
            raise ConfigError(f"unknown rule {text!r} in {option}{hint}")
    return tuple(text.upper() for text in given)


def _code_of(name: str) -> str:
    """A hint at the code of a rule that is named by its name."""
    codes = (rule.code for rule in rules.registry().values() if rule.name == name.lower())
    return next((f" (rules are selected by code: {code})" for code in codes), "")


def nearest(text: str, known: Iterable[str]) -> str:
    """A hint at the nearest of the known words, to be appended to a message."""
    import difflib  # only needed when something is already wrong

    close = difflib.get_close_matches(text, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _parse(path: str, document: Mapping[str, object]) -> Config:
    requires = _table(document, "project").get("requires-python")
    try:
        if requires is not None and not isinstance(requires, str):
            raise ConfigError("requires-python must be a string")
        return _from_table(_table(document, "tool").get("cudalint", {}), path, requires)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _table(document: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _read_toml(path: str) -> Mapping[str, object]:
    import tomli

    try:
        # Editors of Windows begin a file with a byte order mark, which TOML does not know.
        return tomli.loads(disk.read(path, disk.MOST_SETTINGS_BYTES).decode("utf-8-sig"))
    except disk.Unreadable as reason:
        raise ConfigError(f"{path}: {reason}") from None
    except ValueError as error:  # also bytes that are not UTF-8
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: not valid TOML: nested too deeply") from None


def _from_table(table: object, path: str, requires: str | None) -> Config:
    if not isinstance(table, dict):
        raise ConfigError("tool.cudalint must be a table")
    for key in table:
        if key not in KEYS:
            raise ConfigError(f"unknown key {key!r} in [tool.cudalint]{nearest(str(key), KEYS)}")
    root = os.path.dirname(path)
    layer = Layer(
        select=_selectors(table, "select") if "select" in table else None,
        extend_select=_selectors(table, "extend-select"),
        ignore=_selectors(table, "ignore"),
    )
    exclude = _patterns(table, "exclude") if "exclude" in table else DEFAULT_EXCLUDE
    more = _patterns(table, "extend-exclude")
    versions = DEFAULT_VERSIONS if requires is None else _required_versions(requires)
    return Config(
        root=root,
        source=path,
        selection=Selection() if layer.is_empty else Selection((layer,)),
        per_file_ignores=_per_file_ignores(table),
        exclude=(*exclude, *more),
        extend_exclude=more,
        lenient=() if "exclude" in table else tuple(name for name in DEFAULT_EXCLUDE if name not in more),
        force_exclude=_flag(table, "force-exclude"),
        target_versions=_choice(table, "target-version", parse_versions, versions),
        platform=_choice(table, "platform", parse_platform, "linux"),
        fail_on=_choice(table, "fail-on", parse_severity, Severity.WARNING),
        models=_check_models(tuple(os.path.join(root, model) for model in _strings(table, "models"))),
        extra_paths=_folders(root, _strings(table, "extra-paths")),
        extend_safe_fixes=_selectors(table, "extend-safe-fixes"),
        extend_unsafe_fixes=_selectors(table, "extend-unsafe-fixes"),
        cache_dir=_choice(table, "cache-dir", lambda given: os.path.join(root, given) if given else None, None),
        severity=_severities(table),
        limits=_limits(table),
        baseline=_choice(table, "baseline", lambda given: os.path.join(root, given) if given else None, None),
    )


KEYS = (
    "select",
    "extend-select",
    "ignore",
    "per-file-ignores",
    "exclude",
    "extend-exclude",
    "force-exclude",
    "target-version",
    "platform",
    "fail-on",
    "models",
    "extra-paths",
    "extend-safe-fixes",
    "extend-unsafe-fixes",
    "cache-dir",
    "baseline",
    "severity",
    "limits",
)
# Keys of the table ``limits``, each with the most that it may be.
LIMITS = {
    "file-size": MOST_FILE_SIZE,
    "depth": MOST_DEPTH,
    "steps": MOST_STEPS,
    "seconds": MOST_SECONDS,
    "context-files": MOST_CONTEXT_FILES,
    "context-size": MOST_CONTEXT_SIZE,
}


def _strings(table: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{key} must be a list of strings")
    return tuple(value)


def _folders(root: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Folders as they are named from the project's; each has to be there, and to be less than everything."""
    found = tuple(os.path.normpath(os.path.join(root, name)) for name in names)
    for name, path in zip(names, found, strict=True):
        if not os.path.isdir(path):
            raise ConfigError(f"extra-paths: no such directory: {name}")
        if os.path.dirname(path) == path:
            raise ConfigError(f"extra-paths: {name} is all that the machine holds: name the folders of modules")
    return found


def _flag(table: Mapping[str, object], key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise ConfigError(f"{key} must be true or false")
    return value


def _patterns(table: Mapping[str, object], key: str) -> tuple[str, ...]:
    return parse_patterns(key, _strings(table, key))


def parse_patterns(option: str, patterns: Iterable[str]) -> tuple[str, ...]:
    """Patterns for files and directories."""
    found = tuple(patterns)
    try:
        Globs(found, os.sep)
    except BadPattern as error:
        raise ConfigError(f"{option}: {error}") from None
    return found


def _selectors(table: Mapping[str, object], key: str) -> tuple[str, ...]:
    return parse_selectors(key, _strings(table, key))


def _per_file_ignores(table: Mapping[str, object]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    key = "per-file-ignores"
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise ConfigError(f"{key} must be a table of patterns and lists of rules")
    parse_patterns(key, value)
    return tuple((pattern, parse_selectors(key, _strings(value, pattern))) for pattern in value)


def _severities(table: Mapping[str, object]) -> tuple[tuple[str, Severity], ...]:
    key = "severity"
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise ConfigError(f"{key} must be a table of rules, each with note, warning or error")
    found = []
    for name, given in value.items():
        (selector,) = parse_selectors(key, [name]) or ("",)
        if not selector or not isinstance(given, str):
            raise ConfigError(f"{key} of {name!r} must be note, warning or error")
        _expect_one_of(f"severity of {name}", given, FAIL_ON)
        found.append((selector, Severity(given)))
    return tuple(found)


def _limits(table: Mapping[str, object]) -> Limits:
    value = table.get("limits", {})
    if not isinstance(value, dict):
        raise ConfigError(f"limits must be a table of {', '.join(LIMITS)}")
    for key, given in value.items():
        if key not in LIMITS:
            raise ConfigError(f"unknown key {key!r} in limits{nearest(str(key), LIMITS)}")
        if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= LIMITS[key]:
            raise ConfigError(f"limits: {key} must be a number from 1 to {LIMITS[key]}")
    return replace(DEFAULT, **{key.replace("-", "_"): given for key, given in value.items()})


def _choice(table: Mapping[str, object], key: str, parse: Callable[[str], _Value], default: _Value) -> _Value:
    if key not in table:
        return default
    value = table[key]
    if not isinstance(value, str):
        raise ConfigError(f"{key} must be a string")
    return parse(value)


def _required_versions(requires: str) -> Versions:
    """The minor versions that ``requires-python`` admits; an open end reaches to the newest known one."""
    lowest: list[Version] = []
    highest: list[Version] = []
    for clause in filter(str.strip, requires.split(",")):
        found = _CLAUSE.fullmatch(clause)
        if found is None:
            raise ConfigError(f"requires-python: {clause.strip()!r} is no version specifier such as '>=3.10'")
        operator, major, digits, patch = found.groups()
        # A bound on Python 2 or 4 lets all, or nothing, of Python 3 through.
        minor = int(digits or 0) if major == "3" else -1 if int(major) < 3 else 1_000
        match operator:
            case ">=" | "~=" | ">" if minor >= 0:
                # ``>3.10`` admits 3.10.1, so the minor version itself stays in; ``~=3.10.2`` admits no other.
                lowest.append((3, minor))
                if operator == "~=" and patch is not None:
                    highest.append((3, minor))
            case "==" | "===" if digits is not None or major != "3":
                lowest.append((3, minor))
                highest.append((3, minor))
            case "<=":
                highest.append((3, minor))
            case "<":
                # ``<3.14.2`` admits 3.14.1.
                highest.append((3, minor if patch is not None and int(patch) else minor - 1))
            case _:
                pass
    bound = min(highest, default=None)
    first = max(lowest, default=min(DEFAULT_VERSIONS[0], bound or _NEWEST))
    last = max(first, _NEWEST) if bound is None or bound > LAST_VERSION else bound
    if not (3, 0) <= first <= last <= LAST_VERSION:
        raise ConfigError(f"requires-python {requires!r} admits no Python that is known, up to {_dotted(LAST_VERSION)}")
    return first, last


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))


def _expect_one_of(key: str, text: str, known: tuple[str, ...]) -> None:
    if text not in known:
        raise ConfigError(f"unknown {key} {text!r}: expected one of {', '.join(known)}{nearest(text, known)}")


def _shared_directory(paths: Iterable[str]) -> str:
    absolute = [os.path.abspath(path) for path in paths] or [os.getcwd()]
    try:
        shared = os.path.commonpath(absolute)
    except ValueError:  # different drives share nothing
        return os.getcwd()
    return shared if os.path.isdir(shared) else os.path.dirname(shared)


def _upwards(directory: str, name: str) -> Iterator[str]:
    """The paths of ``name`` in ``directory`` and the directories above it, the closest first."""
    while True:
        candidate = os.path.join(directory, name)
        if os.path.lexists(candidate):
            yield candidate
        parent = os.path.dirname(directory)
        if parent == directory:
            return
        directory = parent
