"""What a program has called when a worker is done: until then nothing shows of what that changes.

A loop would have called it by the time at which the program goes on.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.returning import Returning
from cudalint.machine.interpreter import Setting
from cudalint.machine.state import Handed, State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Ref, unknown
from cudalint.structs import replace

_CALLED = ("callback", "error_callback")
_LATER = "add_done_callback"


class CallingBack(Returning):
    """A machine that notes what will be changed when workers are done, and whether the program looks at that before."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # What is changed while what a program has called back runs on a copy; None while nothing does.
        self._changed_then: set[Hashable] | None = None
        # How deep in calls that may call back at once.
        self._calling = 0

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may be told what to call when a worker is done."""
        called = tuple(self._called_when_done(call))
        changed = self._changed_by(called, call) if called else set()
        self._calling += bool(called)
        results = super().library_call(call)
        self._calling -= bool(called)
        for after, value in results if changed else ():
            until = frozenset(atom.address for atom in (*value, call.receiver) if isinstance(atom, Ref))
            set_then = {Handed(address, call.site, until, None, is_set=True) for address in changed}
            after.process = replace(after.process, handed=after.process.handed | set_then)
        return results

    def _called_when_done(self, call: Call) -> Iterator[Atom]:
        if not self.library.traits.has(self.library.canonical(call.path), "calls-when-ready"):
            return
        if call.path.endswith(_LATER):
            yield from (atom for value in call.args[:1] for atom in value)
        for name in _CALLED:
            yield from call.get(name) or ()

    def _changed_by(self, called: tuple[Atom, ...], call: Call) -> set[Hashable]:
        """What functions change that was there before."""
        outer, self._changed_then = self._changed_then, set()
        around = Frame(call.frame.scope, call.frame.module, tries=1)
        given = [unknown("given", call.site)]
        for atom in called:
            self._runs_with(atom, given, call, around)
        changed, self._changed_then = self._changed_then, outer
        return {address for address in changed if _was_there(address, call.state)}

    def _runs_with(self, atom: Atom, given: list[tuple[Atom, ...]], call: Call, around: Frame) -> None:
        self._some_day(call.state, lambda copy: self.call_value((atom,), given, {}, copy, around, call.site))

    def _stores_into(self, address: Hashable, site: Site, state: State, lossy: bool = False) -> None:
        if self._changed_then is None:
            super()._stores_into(address, site, state, lossy)
        else:
            self._changed_then.add(address)

    def _meets_pending(self, address: Hashable, site: Site, state: State, name: str = "") -> None:
        """The program looks at something: a worker that is done may have changed it by now, or may yet."""
        is_called_back = self._changed_then is not None or self._calling > 0
        if not is_called_back and any(one.is_set and one.address == address for one in state.process.handed):
            self._asked.setdefault(Doubt(Why.ARRIVES, name, site))


def _was_there(address: Hashable, state: State) -> bool:
    match address:
        case (owner, str()):
            found = state.at(owner)
            return found is not None and not isinstance(found, LibraryObject)
    return state.at(address) is not None
