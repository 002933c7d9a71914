"""Where the source of a project's dependencies lies, of those that are no releases.

These are projects of the same repository that the project requires by name or by path (workspaces of uv, Poetry, Hatch
and PDM, or none at all), and what is installed as editable in the environment that lies in the project. Nothing of
them is run: an installer's ``.pth`` files and finders are read as text.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping

import tomli

from cudalint import disk
from cudalint.discovery import PROJECT_FILE
from cudalint.structs import Mutable

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_PATH = re.compile(r"@\s*(?:file:/*)?(?:\$\{PROJECT_ROOT\}|\{root(?::uri)?\})/*([^\s;#]+)")
_MAPPING = re.compile(r"^MAPPING[^=\n]*=\s*(\{[^\n]*\})\s*$", re.MULTILINE)
_MAPPED = re.compile(r"\bmap_module\(\s*(['\"])([\w.]+)\1\s*,\s*(['\"])(.+?)\3")
_ASIDE = frozenset({"node_modules", "venv", "build", "dist", "site-packages", "__pycache__"})
_ENVIRONMENTS = (".venv", "venv")
# A repository begins no further above a project, and its projects lie no deeper.
_MOST_ABOVE = 6
_MOST_BELOW = 3
_MOST_FOLDERS = 2_000
_MOST_SIBLINGS = 100

Table = Mapping[str, object]


def source_roots(root: str) -> tuple[str, ...]:
    """The folders outside of a project that hold the source of what it requires."""
    found = dict.fromkeys((*_required(root, _read(root)), *_editable(root)))
    # What lies around a project is read where it is one: else all beside it would be, up to the whole disk.
    return tuple(
        path for path in found if not _is_within(path, root) and (not _is_within(root, path) or _is_project(path))
    )


def _is_project(folder: str) -> bool:
    """Whether an installer would take a folder for a project."""
    return any(os.path.isfile(os.path.join(folder, name)) for name in (PROJECT_FILE, "setup.py", "setup.cfg"))


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


# -- projects of the repository -----------------------------------------------------------------------------------


class _Repository(Mutable):
    """The projects that lie beside a project, by name; looked for when the first of them is required."""

    top: str | None
    _projects: dict[str, str] | None = None

    def project(self, name: str) -> str | None:
        if self._projects is None:
            folders = [] if self.top is None else _projects_in(self.top)
            named = ((_name_of(_read(folder)), folder) for folder in folders)
            self._projects = {name: folder for name, folder in named if name}
        return self._projects.get(name)


def _required(root: str, document: Table) -> Iterator[str]:
    """The source roots of what a project requires of its repository, and of what that requires."""
    repository, pending, known = _Repository(_repository(root)), [(root, document)], {root}
    while pending and len(known) < _MOST_SIBLINGS:
        folder, said = pending.pop(0)
        own = [os.path.normpath(os.path.join(folder, path)) for path in _paths(said)]
        own += [place for name in _names(said) if (place := repository.project(name)) is not None]
        for place in own:
            if place in known or not _is_project(place):
                continue
            known.add(place)
            found = _read(place)
            yield from _roots_of(place, found)
            pending.append((place, found))


def _repository(root: str) -> str | None:
    """The folder of the repository around a project: the furthest that says so, not far above."""
    found, folder = None, root
    for _ in range(_MOST_ABOVE):
        above = os.path.dirname(folder)
        if above == folder:
            return found
        folder = above
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
        if os.path.isfile(os.path.join(folder, PROJECT_FILE)):
            found = folder
    return found


def _projects_in(top: str) -> Iterator[str]:
    """The folders with a project, those near the top first."""
    level, seen = [top], 0
    for _ in range(_MOST_BELOW + 1):
        below: list[str] = []
        for folder in level:
            seen += 1
            if seen > _MOST_FOLDERS:
                return
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError:
                continue
            if any(entry.name == PROJECT_FILE for entry in entries):
                yield folder
            below += [e.path for e in entries if _is_looked_into(e)]
        level = below


def _is_looked_into(entry: os.DirEntry[str]) -> bool:
    return not entry.name.startswith(".") and entry.name not in _ASIDE and entry.is_dir(follow_symlinks=False)


def _read(folder: str) -> Table:
    """What the pyproject.toml of a folder says; nothing where there is none that could be read."""
    try:
        data = disk.read(os.path.join(folder, PROJECT_FILE), disk.MOST_SETTINGS_BYTES)
        return tomli.loads(data.decode("utf-8-sig"))
    except (disk.Unreadable, UnicodeDecodeError, tomli.TOMLDecodeError, RecursionError):
        return {}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _at(value: object, *keys: str) -> object:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _table(value: object, *keys: str) -> Table:
    found = _at(value, *keys)
    return found if isinstance(found, Mapping) else {}


def _texts(value: object) -> Iterator[str]:
    """The texts in a list, or in the lists of a table."""
    lists = value.values() if isinstance(value, Mapping) else (value,)
    for one in lists:
        yield from (text for text in one if isinstance(text, str)) if isinstance(one, list) else ()


def _name_of(document: Table) -> str:
    named = _at(document, "project", "name") or _at(document, "tool", "poetry", "name")
    return _plain(named) if isinstance(named, str) else ""


def _requirements(document: Table) -> Iterator[str]:
    yield from _texts(_at(document, "project", "dependencies"))
    yield from _texts(_at(document, "project", "optional-dependencies"))
    yield from _texts(_at(document, "dependency-groups"))
    yield from _texts(_at(document, "tool", "pdm", "dev-dependencies"))


def _poetry(document: Table) -> Iterator[Table]:
    poetry = _table(document, "tool", "poetry")
    yield from (_table(poetry, "dependencies"), _table(poetry, "dev-dependencies"))
    yield from (_table(group, "dependencies") for group in _table(poetry, "group").values())


def _names(document: Table) -> Iterator[str]:
    """The names of the projects that one requires."""
    for text in _requirements(document):
        if (found := _NAME.match(text)) is not None:
            yield _plain(found.group(1))
    for table in _poetry(document):
        yield from map(_plain, table)


def _paths(document: Table) -> Iterator[str]:
    """The paths of the projects that one requires, as it names them."""
    for text in _requirements(document):
        if (found := _PATH.search(text)) is not None:
            yield found.group(1)
    tables = (*_poetry(document), _table(document, "tool", "uv", "sources"))
    for value in (value for table in tables for value in table.values()):
        if isinstance(path := _at(value, "path"), str):
            yield path


def _roots_of(folder: str, document: Table) -> Iterator[str]:
    """The folders that a project's own installation would put on the path."""
    tool = _table(document, "tool")
    named = [*_texts(_at(tool, "setuptools", "packages", "find", "where"))]
    named += [path for path in (_at(tool, "setuptools", "package-dir", ""),) if isinstance(path, str)]
    packages = _at(tool, "poetry", "packages")
    places = (_at(entry, "from") for entry in packages) if isinstance(packages, list) else ()
    named += [place for place in places if isinstance(place, str)]
    built = _texts(_at(tool, "hatch", "build", "targets", "wheel", "packages"))
    named += [os.path.dirname(path.rstrip("/")) for path in built]
    found = [os.path.normpath(os.path.join(folder, name)) for name in named]
    source = os.path.join(folder, "src")
    given = [path for path in found if os.path.isdir(path)]
    yield from given or ([source] if os.path.isdir(source) else [folder])


# -- what is installed as editable --------------------------------------------------------------------------------


def _editable(root: str) -> Iterator[str]:
    """The source roots that the installers of editable projects wrote down in the environment of a project."""
    for place in _packages_of(root):
        try:
            names = sorted(os.listdir(place))
        except OSError:
            continue
        for name in names:
            if name.endswith(".pth"):
                yield from _of_lines(place, _text(os.path.join(place, name)))
            elif name.startswith(("__editable__", "_editable_impl")) and name.endswith(".py"):
                yield from _of_finder(_text(os.path.join(place, name)))


def _packages_of(root: str) -> Iterator[str]:
    for name in _ENVIRONMENTS:
        library = os.path.join(root, name, "lib")
        try:
            versions = sorted(entry for entry in os.listdir(library) if entry.startswith("python"))
        except OSError:
            continue
        yield from (os.path.join(library, version, "site-packages") for version in versions)
        yield os.path.join(root, name, "Lib", "site-packages")


def _text(path: str) -> str:
    try:
        return disk.read(path, disk.MOST_SETTINGS_BYTES).decode(errors="replace")
    except disk.Unreadable:
        return ""


def _of_lines(place: str, text: str) -> Iterator[str]:
    """The folders of a ``.pth`` file, other than those of the environment itself."""
    for line in map(str.strip, text.splitlines()):
        if line and not line.startswith(("#", "import ", "import\t")):
            path = os.path.normpath(os.path.join(place, line))
            if os.path.isdir(path) and "site-packages" not in path.split(os.sep):
                yield path


def _of_finder(text: str) -> Iterator[str]:
    """The folders that hold the packages which a finder of setuptools or Hatch leads to."""
    found = _MAPPING.search(text)
    yield from _holding(_literal(found.group(1)).items() if found is not None else ())
    yield from _holding((name, path) for _, name, _, path in _MAPPED.findall(text))


def _literal(text: str) -> Mapping[object, object]:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _holding(mapped: Iterable[tuple[object, object]]) -> Iterator[str]:
    for name, path in mapped:
        if isinstance(name, str) and isinstance(path, str) and os.path.isabs(path):
            place = os.path.dirname(path) if os.path.basename(path) == "__init__.py" else path
            for _ in name.split("."):
                place = os.path.dirname(place)
            if os.path.isdir(place):
                yield os.path.normpath(place)
