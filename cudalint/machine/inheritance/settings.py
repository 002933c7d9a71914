"""What a task sets in its process and a later one finds: which of several workers is given which task, differs.

A task that sets it before anything of its own could feel it finds what it sets, whatever others left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.ledger import Handed
from cudalint.machine.inheritance.process_effects import shown, takes_from_folder
from cudalint.machine.inheritance.tasks import Tasks
from cudalint.machine.interpreter import Setting
from cudalint.machine.state import Setting as Kept
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Lib, Unknown, Value, constant
from cudalint.structs import replace

_ENVIRON = "os.environ["
# What is written on the console goes there.
_CONSOLE = frozenset({"sys.stdout", "sys.stderr"})
# Methods that make longer what the process has.
_LONGER = (".append", ".extend", ".insert")


class Settings(Tasks):
    """A machine that notes which settings of their process tasks find that earlier tasks have left."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # By manager that takes back what is set in its body, what this process had set when it was entered.
        self._at_entry: dict[Atom, frozenset[Kept]] = {}

    def begins_task(self, state: State, is_first: bool, given: Iterable[Value] = ()) -> None:
        """A worker begins a task: what the one before it has set stands."""
        super().begins_task(state, is_first, given)
        process = state.process
        if self._shared_out(state) is not None and not is_first:
            state.process = replace(process, left=process.left | process.set_now, set_now=frozenset())

    def _note(
        self,
        why: Why,
        name: str,
        site: Site,
        state: State,
        ends: bool = False,
        handed: Handed | None = None,
        felt_by: tuple[str, ...] = (),
    ) -> None:
        if why in (Why.SETS, Why.STORES) and name and not ends:
            kept = Kept(name, felt_by, handed is Handed.FOLDER, name.endswith(_LONGER), why is Why.STORES, site)
            self._sets(kept, state)
        super()._note(why, name, site, state, ends, handed, felt_by)

    def _sets(self, kept: Kept, state: State) -> None:
        if self._watches and self._shared_out(state) is not None:
            state.process = replace(state.process, set_now=state.process.set_now | {kept})

    def set_attribute(
        self, owner: Value, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> list[State]:
        """``owner.attr = value``, where a function of a library gave the owner: what that gives is its process's."""
        for atom in owner:
            match atom:
                case Unknown(sym=("call", _, _, _, str(path)) | ("follows", str(path), *_)):
                    if not self._is_own(atom, state):
                        self._sets(Kept(f"{path}().{attr}", (), False, False, True, site), state)
        return super().set_attribute(owner, attr, value, state, frame, site)

    def enter(self, manager: Value, state: State, frame: Frame, site: Site) -> Results:
        """``manager.__enter__()``, which may remember what it takes back."""
        for atom in manager:
            if self._restored_by(atom):
                self._at_entry[atom] = state.process.set_now
        return super().enter(manager, state, frame, site)

    def leave(self, manager: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``manager.__exit__()``, which may take back what its body has set."""
        states = super().leave(manager, state, frame, site)
        for atom in manager:
            root = self._restored_by(atom)
            before = self._at_entry.pop(atom, frozenset())
            for after in states if root else ():
                kept = {o for o in after.process.set_now if o in before or o.of or _root(o.name) != root}
                after.process = replace(after.process, set_now=frozenset(kept))
        return states

    def _restored_by(self, atom: Atom) -> str:
        """The library of which a manager takes back what is set in its body."""
        match atom:
            case Unknown(sym=("call", _, _, _, str(path))) if self.library.traits.has(path, "restores"):
                return _root(path)
        return ""

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may find what an earlier task has set."""
        path = self.library.canonical(call.path)
        if call.text("does").startswith("environ."):
            name = constant(call.args[0]) if call.args else ...
            finds = call.text("does") in ("environ.get", "environ.contains", "environ.preset")
            if finds or self.library.traits.has(path, "gives-earlier"):
                self._finds_variable(name if isinstance(name, str) else None, call.state)
        else:
            self._feels(path, call.state)
        if call.text("does") in ("getattr", "hasattr") and len(call.args) > 1:
            for atom in call.args[0]:
                if isinstance(atom, Lib):
                    self._reads_variable(f"{atom.path}.{constant(call.args[1])}", call.state)
        return super().library_call(call)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        self._feels(path, given.state)
        return super()._foreign(path, atom, given)

    def _library_attribute(self, path: str, name: str, state: State, frame: Frame, site: Site) -> Results:
        self._reads_variable(f"{path}.{name}", state)
        return super()._library_attribute(path, name, state, frame, site)

    def _library_import_from(self, node: ir.ImportFrom, state: State, frame: Frame) -> list[State]:
        for name, _ in node.names or ():
            self._reads_variable(self.library.canonical(f"{node.module}.{name}"), state)
        return super()._library_import_from(node, state, frame)

    def _reads_variable(self, name: str, state: State) -> None:
        """A variable of a library is read, which may be a setting, or what grows by its methods."""
        if self.library.process_effect(f"{name}.__get__") is not None:
            self._calls_by_name(f"{name}.__get__", state)
        for kept in self._left(state):
            if kept.name == name if kept.is_variable else kept.adds and kept.name.startswith(f"{name}."):
                self._finds_kept(kept, state)

    def _attribute_of(self, atom: Atom, name: str, state: State, frame: Frame, site: Site) -> Results:
        """``x.name`` of what a library gave: it may be a setting that an earlier task made by a method."""
        match atom:
            case Unknown(sym=("call", _, _, _, str(path))) | Unknown(sym=("follows", str(path), *_)):
                for watch in self._reading(state):
                    watch.asked.add(_root(path))
                for kept in self._left(state):
                    if not kept.of and _root(kept.name) == _root(path):
                        self._finds_kept(kept, state)
        return super()._attribute_of(atom, name, state, frame, site)

    def _feels(self, path: str, state: State) -> None:
        """A function of a library runs: what of that which is left does it find?"""
        if self.library.traits.has(path, "counts-gpus"):
            return
        for kept in self._left(state):
            if kept.of:
                continue
            if kept.name in _CONSOLE:
                feels = self.library.traits.has(path, "on-console")
            elif kept.felt_by:
                feels = self.library.feels(path, kept.felt_by)
            elif kept.is_folder or kept.name.startswith(_ENVIRON):
                feels = self.starts_program(path)
            else:
                feels = _root(path) == _root(kept.name)
            gives = path in kept.felt_by or self.library.traits.has(path, "gives-earlier")
            is_itself = kept.name == shown(path) and not gives
            if not is_itself and (feels or (kept.is_folder and takes_from_folder(path))):
                self._finds_kept(kept, state)

    def _finds_variable(self, name: str | None, state: State) -> None:
        for kept in self._left(state):
            if kept.name.startswith(_ENVIRON) and (name is None or f"[{name!r}]" in kept.name):
                self._finds_kept(kept, state)

    def _left(self, state: State) -> Iterator[Kept]:
        """What earlier tasks have left, and this one has not yet set anew."""
        if not state.process.left:
            return
        anew = [kept for kept in state.process.set_now if not kept.adds]
        names = {kept.name for kept in anew if not kept.of}
        for kept in state.process.left:
            if kept.of:
                if not any(one.aspect == kept.aspect and kept.of <= one.of for one in anew):
                    yield kept
            elif kept.name not in names:
                yield kept

    def _finds_kept(self, kept: Kept, state: State) -> None:
        for watch in self._reading(state):
            watch.doubts.setdefault(Doubt(Why.LEFT, kept.name, kept.site))


def _root(path: str) -> str:
    return path.removeprefix("builtins.").partition(".")[0]
