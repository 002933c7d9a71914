"""Files that a program changes, and that the imports of a fresh process read once more."""

from __future__ import annotations

import posixpath
from collections.abc import Hashable, Iterator, Sequence

from cudalint.machine.frame import Call, Given, Results
from cudalint.machine.heap import Sequence as Words
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.ledger import Watch
from cudalint.machine.inheritance.process_effects import shown
from cudalint.machine.inheritance.sameness import known
from cudalint.machine.inheritance.times import Times
from cudalint.machine.interpreter import Setting
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Const, Lib, Ref, Unknown, Value, constant

# What starts other programs.
_STARTS = frozenset({"fresh-process", "becomes-program"})
# Whichever file.
ANY_FILE: Value = (Unknown(("any file",)),)


class Files(Times):
    """A machine that knows which files were changed before a launch, and which the imports of a fresh process read."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # By process: what was changed, by which call, where.
        self._changed: list[tuple[tuple[str, ...], Value, str, Site]] = []
        # By fresh process: what its imports read.
        self._read_again: dict[tuple[str, ...], list[Value]] = {}

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        match atom:
            case Unknown(sym=(base, ".", str(name))):
                self._touches(f"?.{name}", [(Unknown(base),), *given.args], given.kwargs, given.site, given.state)
        return super()._call_atom(atom, given)

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may read a file or change one."""
        self._touches(self.library.canonical(call.path), call.args, call.kwargs, call.site, call.state)
        return super().library_call(call)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        self._touches(path, given.args, given.kwargs, given.site, given.state)
        return super()._foreign(path, atom, given)

    def _touches(self, path: str, args: Sequence[Value], kwargs: dict[str, Value], site: Site, state: State) -> None:
        watch, traits = self._watch(state), self.library.traits
        if self.starts_program(path) and not self._only_asks(args, state):
            self._changed.append((state.process.identity, ANY_FILE, shown(path), site))
        opens = traits.has(path, "opens-file")
        if traits.has(path, "changes-file") or (opens and _is_written(args, kwargs)):
            place = None if opens else traits.of(path, "changes-file")
            paths = args[:1] if opens else args if place is None or place.place is None else args[place.place :][:1]
            self._changed.extend((state.process.identity, value, shown(path), site) for value in paths)
        elif (opens or traits.has(path, "reads-file")) and args and watch is not None and self._at_import(watch):
            self._read_again.setdefault(state.process.identity, []).append(args[0])

    def starts_program(self, path: str) -> bool:
        """Whether a function runs another program."""
        spec = self.library.function(path)
        return (spec is not None and spec["does"] in _STARTS) or path.startswith(("subprocess.", "os.popen", "os.exec"))

    def _only_asks(self, args: Sequence[Value], state: State) -> bool:
        """Whether a command is one of those that leave all files as they are."""
        command = args[0] if args else ()
        found = state.get(command[0]) if len(command) == 1 and isinstance(command[0], Ref) else None
        first = constant(found.items[0]) if isinstance(found, Words) and found.items else constant(command)
        words = first.split() if isinstance(first, str) else []
        return bool(words) and self.library.traits.has(posixpath.basename(words[0]), "program-that-asks")

    def _rereads(self, watch: Watch) -> Iterator[Doubt]:
        """The files that the processes before a fresh one changed, and that its imports read."""
        before = watch.launch.identity[:-1]
        again = self._read_again.get(watch.launch.identity, ())
        for identity, value, name, site in self._changed:
            if before[: len(identity)] != identity:
                continue
            if any(_may_be_one(value, other) for other in again) or _is_program(value, name):
                yield Doubt(Why.FILES, name, site)


def _is_written(args: Sequence[Value], kwargs: dict[str, Value]) -> bool:
    mode = kwargs.get("mode") or (args[1] if len(args) > 1 else (Const("r"),))
    text = constant(mode)
    return not isinstance(text, str) or bool(set(text) & set("wxa+"))


def _is_program(path: Value, name: str) -> bool:
    """Whether a path leads to a file of Python, which a fresh process imports as it is by then."""
    last = next(_names(path), None)
    if last is not None:
        return last.endswith(".py")
    # What is copied from the file of a module leaves that as it is.
    return not name.startswith("shutil.copy") and any(_begins_with_file(atom) for atom in path)


def _begins_with_file(part: Hashable) -> bool:
    match part:
        case Unknown(sym=sym):
            return _begins_with_file(sym)
        case tuple():
            return "__file__" in part or any(map(_begins_with_file, part))
    return False


def _may_be_one(one: Value, other: Value) -> bool:
    """Whether two paths may lead to one file: where both are shown, their last names say so."""
    if not known(one) or not known(other):
        return True
    names = [next(_names(value), None) for value in (one, other)]
    return None in names or names[0] == names[1]


def _names(part: Hashable) -> Iterator[str]:
    """The texts that a path is made of, the last one first."""
    match part:
        case Const(value=str(text)):
            yield posixpath.basename(text.rstrip("/"))
        case Unknown(sym=sym):
            yield from _names(sym)
        case tuple():
            for inner in reversed(part):
                yield from _names(inner)
