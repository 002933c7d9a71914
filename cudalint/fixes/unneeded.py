"""What a repair leaves behind that nothing uses any more: imports, and variables of values that do nothing, go with it.

Only what the repair itself took the last use of, and only where it is certain that nothing else asks for it: not by the
name in a text, not by going through the names of a module, and not from another file.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

import libcst as cst

from cudalint.fixes import layout, names
from cudalint.fixes.edits import Change
from cudalint.fixes.statements import is_docstring
from cudalint.fixes.view import View, dotted, imported
from cudalint.models.traits import Traits

_WORD = re.compile(r"[^\W\d]\w*")
_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")
# These look at names without saying them.
_LOOK_AROUND = frozenset({"globals", "locals", "vars", "eval", "exec", "dir", "__dict__", "getmembers"})
_IMPORTS = (cst.Import, cst.ImportFrom)
_TYPE_COMMENT = re.compile(r"#\s*type:")
# The trait of calls that give a value and do nothing else that a program would miss.
_ONLY_GIVES = "only-gives"
_READ = frozenset({"os.environ"})


def may_be_unneeded(before: View, text: str) -> bool:
    """Whether a changed text may have lost the last use of a name, told without parsing it."""
    gone = Counter(_NAME.findall(before.text)) - Counter(_NAME.findall(text))
    return not gone.keys().isdisjoint(before.once(_removable))


def _removable(view: View) -> frozenset[str]:
    """The names that the imports and the plain assignments of a file bind."""
    found = {name for node in view.each(view.tree, *_IMPORTS) for name, _ in imported(node)}
    targets = (node.target for node in view.each(view.tree, cst.AssignTarget))
    return frozenset(found.union(target.value for target in targets if isinstance(target, cst.Name)))


def without_unneeded(
    before: View, after: View, others: Iterable[str], variables_by: Traits | None = None
) -> list[Change]:
    """The changes that take away one thing that nothing uses any more; none where there is no such thing.

    ``others``: the texts of the other files. ``variables_by``: those may go, too, whose values do nothing by these.
    """
    if not _LOOK_AROUND.isdisjoint(after.names()):
        return []
    for name, node in _unused_imports(before, after):
        if not _is_said(after, name) and not any(_may_take(text, after.name, name) for text in others):
            changes = _without_alias(after, node)
            if changes:
                return changes
    for statement in _unused_variables(before, after, variables_by) if variables_by is not None else ():
        return layout.taken_out(after, statement)
    return []


# -- imports ---------------------------------------------------------------------------------------------------


def _unused_imports(before: View, after: View) -> Iterator[tuple[str, cst.ImportAlias]]:
    used = before.once(_used) - after.once(_used)
    aliases = list(after.each(after.tree, cst.ImportAlias))
    bound = Counter(name for node in after.each(after.tree, *_IMPORTS) for name, _ in imported(node))
    for alias in aliases:
        name = _name_of(after, alias)
        if name in used and bound[name] == 1 and len(_bindings_of(after, name)) == 1:
            yield name, alias


def _used(view: View) -> frozenset[str]:
    """The names that a file reads anywhere, beside what stands in its imports."""
    ours = {id(n) for node in view.each(view.tree, *_IMPORTS) for n in view.inside(node)}
    read = (n for n in view.each(view.tree, cst.Name) if id(n) not in ours)
    return frozenset(n.value for n in read if names.is_variable(view, n))


def _name_of(view: View, alias: cst.ImportAlias) -> str:
    if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
        return alias.asname.name.value
    written = dotted(alias.name)
    return written if isinstance(view.parent(alias), cst.ImportFrom) else written.partition(".")[0]


def _bindings_of(view: View, name: str) -> list[cst.CSTNode]:
    """All places of a file that bind a name, in whatever scope; ``as`` and what it stands behind are one."""
    bound = (node for scope in _scopes(view) for n, node in names.bindings(view, scope) if n == name)
    return [node for node in bound if not (isinstance(node, cst.ImportAlias) and node.asname is not None)]


def _scopes(view: View) -> list[cst.FunctionDef | cst.Module]:
    return [view.tree, *view.each(view.tree, cst.FunctionDef)]


def _is_said(view: View, name: str) -> bool:
    """Whether a text or a comment on types of a file says a name: ``__all__``, an annotation, what is patched."""
    docstrings = {id(n) for s in view.inside(view.tree) if is_docstring(s) for n in view.inside(s)}
    for node in view.inside(view.tree):
        match node:
            case cst.SimpleString(value=value) if id(node) not in docstrings and name in _WORD.findall(value):
                return True
            case cst.Comment(value=value) if _TYPE_COMMENT.match(value) and name in _WORD.findall(value):
                return True
    return False


def _may_take(text: str, module: str, name: str) -> bool:
    """Whether a file may take a name from a module: it says the module, and either the name behind a dot or ``*``."""
    last = re.escape(module.rpartition(".")[2])
    if re.search(rf"\b{last}\b", text) is None:
        return False
    taken = rf"\bfrom\s+[\w.]*\b{last}\s+import\b(?:[^\n(]*|\s*\([^)]*)(?:\b{re.escape(name)}\b|\*)"
    return re.search(rf"\.\s*{re.escape(name)}\b", text) is not None or re.search(taken, text) is not None


def _without_alias(view: View, alias: cst.ImportAlias) -> list[Change]:
    """An import without one of its names, or without all of it where that was the only one; empty where it may act."""
    statement = view.parent(alias)
    line = None if statement is None else view.statement(statement)
    if (
        not isinstance(statement, cst.Import | cst.ImportFrom)
        or line is None
        or isinstance(statement.names, cst.ImportStar)
    ):
        return []
    if _is_tried(view, line) or any(isinstance(node, cst.Comment) for node in view.inside(line)):
        return []
    if len(statement.names) > 1:
        return _without_one_of(view, statement, list(statement.names), alias)
    if not layout.has_own_rows(view, line) or not _is_loaded_elsewhere(view, statement):
        return []
    (gone,) = layout.taken_out(view, line)
    return [layout.closed_up(view, gone)]


def _is_tried(view: View, line: cst.BaseStatement) -> bool:
    """Whether an import stands where a program looks whether there is such a thing, or chooses one of several."""
    around = (node for node in view.around(line) if isinstance(node, cst.Try | cst.TryStar | cst.If | cst.With))
    return any(not layout.is_guard(view, node) for node in around)


def _without_one_of(
    view: View, statement: cst.Import | cst.ImportFrom, aliases: list[cst.ImportAlias], alias: cst.ImportAlias
) -> list[Change]:
    module = _module_of(statement, alias)
    is_module = isinstance(statement, cst.Import) or not _is_attribute(module, dotted(alias.name))
    if is_module and not _is_of_python(module):
        return []
    at = aliases.index(alias)
    if at + 1 < len(aliases):
        return [Change(view.start(alias), view.start(aliases[at + 1]), "")]
    previous = aliases[at - 1]
    return [Change(_end_of(view, previous), _end_of(view, alias), "")]


def _is_attribute(module: str, name: str) -> bool:
    """Whether what is imported is no module of its own, as a name like ``Pool`` or a constant of a module shows."""
    return name[:1].isupper() or _is_of_python(module) or module == "torch.cuda"


def _end_of(view: View, alias: cst.ImportAlias) -> int:
    """The character after a name that is imported, without the comma that follows it."""
    return view.end(alias.name if alias.asname is None else alias.asname.name)


def _module_of(statement: cst.Import | cst.ImportFrom, alias: cst.ImportAlias) -> str:
    if isinstance(statement, cst.Import):
        return dotted(alias.name)
    return "." * len(statement.relative) + ("" if statement.module is None else dotted(statement.module))


def _is_of_python(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def _is_loaded_elsewhere(view: View, statement: cst.Import | cst.ImportFrom) -> bool:
    """Whether nothing is missed where an import goes: it is of Python's own, or its package is imported besides."""
    aliases = () if isinstance(statement.names, cst.ImportStar) else statement.names
    own = {_module_of(statement, alias) for alias in aliases}
    if all(_is_of_python(module) for module in own):
        return True
    rest = (n for n in view.each(view.tree, *_IMPORTS) if n is not statement)
    kept = {
        binding.module.partition(".")[0]
        for node in rest
        if view.function(node) is None
        for _, binding in imported(node)
    }
    return view.function(statement) is None and all(module.partition(".")[0] in kept for module in own)


# -- variables -------------------------------------------------------------------------------------------------


def _unused_variables(before: View, after: View, traits: Traits) -> Iterator[cst.BaseStatement]:
    """Assignments of functions, and of the main guard, whose names nothing reads any more."""
    used, still = before.once(_used_by_scope), after.once(_used_by_scope)
    for scope in _scopes(after):
        path, bound = _path(after, scope), list(names.bindings(after, scope))
        counts = Counter(name for name, _ in bound)
        unread = used.get(path, frozenset()) - still.get(path, frozenset())
        for name, node in bound:
            if not isinstance(node, cst.AssignTarget):
                continue
            assigned, line = after.parent(node), after.statement(node)
            if name not in unread or counts[name] != 1 or not isinstance(assigned, cst.Assign) or line is None:
                continue
            is_plain = len(assigned.targets) == 1 and isinstance(node.target, cst.Name)
            is_own = scope is not after.tree or layout.is_guard(after, after.outermost(node))
            if is_plain and is_own and _does_nothing(after, assigned.value, traits) and _may_go(after, line):
                yield line


def _path(view: View, scope: cst.CSTNode) -> tuple[str, ...]:
    """By which names a scope is known again in a changed text."""
    return tuple(n.name.value for n in (scope, *view.around(scope)) if isinstance(n, cst.FunctionDef | cst.ClassDef))


def _used_by_scope(view: View) -> dict[tuple[str, ...], frozenset[str]]:
    """The names that are read in each function and what stands in it; of the module, in the whole file."""
    found: dict[tuple[str, ...], frozenset[str]] = {(): view.once(_used)}
    for scope in view.each(view.tree, cst.FunctionDef):
        path = _path(view, scope)
        read = (n for n in view.each(scope.body, cst.Name) if names.is_variable(view, n))
        found[path] = found.get(path, frozenset()) | {n.value for n in read}
    return found


def _may_go(view: View, line: cst.BaseStatement) -> bool:
    """Whether a row can be taken away without what somebody wrote beside it, and leaves something behind."""
    has_comment = any(isinstance(node, cst.Comment) for node in view.inside(line))
    return layout.has_own_rows(view, line) and not has_comment and len(view.siblings(line)) > 1


def _does_nothing(view: View, value: cst.BaseExpression, traits: Traits) -> bool:
    """Whether to work out a value changes nothing, and is sure to end well where the program did so far."""
    match value:
        case cst.Name() | cst.Integer() | cst.Float() | cst.SimpleString():
            return True
        case cst.Attribute():
            return _library_name(view, value) in _READ
        case cst.Subscript(value=base):
            return _library_name(view, base) in _READ
        case cst.BinaryOperation(left=left, right=right):
            return _does_nothing(view, left, traits) and _does_nothing(view, right, traits)
        case cst.Call(func=func, args=args):
            is_given = traits.has(_library_name(view, func), _ONLY_GIVES)
            return is_given and all(_does_nothing(view, arg.value, traits) for arg in args)
    return False


def _library_name(view: View, node: cst.BaseExpression) -> str:
    """The name of a library or of a builtin that an expression is, if it is one."""
    root, dot, rest = dotted(node).partition(".")
    binding = view.bindings().get(root)
    if binding is None:
        return f"builtins.{root}{dot}{rest}"
    whole = binding.module if binding.name is None else f"{binding.module}.{binding.name}"
    return f"{whole if '.' not in whole or binding.name or root != whole.partition('.')[0] else root}{dot}{rest}"
