"""What of a program can tell that a module has a name more, or that a function got one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath

import libcst as cst

from cudalint.fixes.proposal import Case
from cudalint.fixes.view import View

# What looks at names, or at the texts of a module, and so at what is there beside what the code says.
_LOOKS = re.compile(
    r"\b(?:globals|locals|vars|dir|eval|exec|inspect|traceback|modules|import_module|__dict__|_getframe|funcName"
    r"|stack_info|get_type_hints)\b"
    r"|\.__(?:qual)?name__\b|\.co_\w+|\bimport\s+__main__|\bco_name\b"
)

# What goes through all names of a module, or counts them; one of them may be asked for by its name.
_COUNTS = re.compile(
    r"\b(?:globals|locals|vars|dir)\(\s*\)(?!\s*(?:\[|\.(?:get|setdefault|update|pop)\b))|\bgetmembers\("
)
# The same of something by its name, which may be a module; and all names of one become names of another.
_COUNTS_OF = re.compile(r"\b(?:vars|dir)\(\s*(\w+)\s*\)|\bgetmembers\(\s*(\w+)|\b(\w+)\.__dict__\b")
# Without one of these there is nothing to ask of a text, which is seen sooner than by patterns.
_OF_ALL_NAMES = ("vars(", "dir(", "globals(", "locals(", "getmembers(", "__dict__")
_TAKES_ALL = re.compile(r"\bimport\s*\*")
_IMPORTS = ("import ", "from ")

# What goes on where a name is not there.
_OUTLIVES = re.compile(r"\bexcept\s*:|\b(?:NameError|Exception|BaseException|suppress)\b")


def misses_nothing(view: View) -> bool:
    """Whether nothing can tell that a variable of a module is set earlier than it was."""
    return _LOOKS.search(view.text) is None and _OUTLIVES.search(view.text) is None


def counts_names(before: Mapping[str, str], changed: Mapping[str, str]) -> bool:
    """Whether some file imports something more at its top, and the program goes through the names of such a module.

    Files by path: all of them, and those that a repair changes as it leaves them.
    """
    growing = {path: rows for path, text in changed.items() if (rows := _more_imports(before[path], text))}
    if not growing:
        return False
    own = any(_COUNTS.search(changed[path]) is not None for path in growing)
    asked = any(_asks_for(rows, _last_name(path), before.values()) for path, rows in growing.items())
    return own or asked or any(_counts_of_others(text) for text in before.values())


def _last_name(path: str) -> str:
    """How a module is called where it is imported from."""
    file = PurePath(path)
    return file.parent.name if file.stem == "__init__" else file.stem


def _more_imports(before: str, after: str) -> list[str]:
    return [row for row in set(after.splitlines()) - set(before.splitlines()) if row.startswith(_IMPORTS)]


def _asks_for(imports: Iterable[str], module: str, texts: Iterable[str]) -> bool:
    """Whether some text asks a module for what an import binds there, by its name or by a text that is one."""
    words = {row.replace(",", " ").split()[-1].partition(".")[0] for row in imports}
    names = "|".join(map(re.escape, sorted(words)))
    text = rf"[\"'](?:{names})[\"']"
    asks = re.compile(
        rf"\b(?:has|get|set|del)attr\([^\n]*{text}|{text}[ \t]+(?:not[ \t]+)?in\b|\[{text}\]|\.(?:get|pop)\({text}"
        rf"|\bfrom[ \t]+\S*\b{module}[ \t]+import\b[^\n]*\b(?:{names})\b|\b{module}\.(?:{names})\b"
    )
    # Most texts have none of these names, which is seen sooner than by the pattern.
    return any(asks.search(text) is not None for text in texts if any(word in text for word in words))


def _counts_of_others(text: str) -> bool:
    """Whether a file goes through the names of a module that it imports, or through its own with these among them."""
    if not any(word in text for word in _OF_ALL_NAMES):
        return False
    if _TAKES_ALL.search(text) is not None and _COUNTS.search(text) is not None:
        return True
    asked = {name for found in _COUNTS_OF.findall(text) for name in found if name}
    return any(re.search(rf"\bimport\b[^\n]*\b{name}\b", text) is not None for name in asked)


def is_named(case: Case, view: View) -> bool:
    """Whether code speaks of a module by its name, and so may import it."""
    name = re.escape(view.name.rpartition(".")[2])
    own = re.compile(rf"^\s*(?:import|from)\b.*\b{name}\b", re.MULTILINE)
    texts = ((source.path, source.text) for source in case.basis.files.sources.values())
    return any(re.search(own if path == view.path else rf"\b{name}\b", text) for path, text in texts)


def goes_unnoticed(case: Case, view: View, name: str, scope: cst.CSTNode | None) -> bool:
    """Whether nothing can tell that a name of a function is now one of its module, or that of a function.

    ``scope`` is the function that has the name, if any: elsewhere in the module it would mean something new.
    """
    if _LOOKS.search(view.text) or (scope is not None and is_named(case, view)):
        return False
    if scope is None:
        return True
    own = {id(node) for node in view.inside(scope)}
    return not any(
        isinstance(node, cst.Name) and node.value == name and id(node) not in own for node in view.inside(view.tree)
    )
