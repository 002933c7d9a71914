"""Which of several failures a program is told of: that of whichever worker failed first.

A loop in one process would fail at the first task that fails. Of workers, a pool raises what came first, as others do.
That shows where what is raised depends on the task, and where the program looks at it.
"""

from __future__ import annotations

from collections.abc import Iterable

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Call, Frame, Given, Raised, Results
from cudalint.machine.heap import Class
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.gathering import Gathering
from cudalint.machine.interpreter import Setting
from cudalint.machine.state import Act, State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Lib, Ref, Unknown, Value

# What is told later, wherever that is asked for.
_LATER = ("_async", ".create_task")

# Launchers that raise what a worker raised with its traceback as a part of the text.
_QUOTES = frozenset({"loader", "spawn"})


class Failures(Gathering):
    """A machine that notes which tasks fail, each with an exception of its own, and who is told of it."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # In how many statements that catch something the code that runs stands, and how many of them name it.
        self._catching = 0
        self._naming = 0
        # Where tasks raise something that differs, and where something that is the same for all: what may still be
        # caught, and what came to the end of its task.
        self._on_the_way: dict[Site, bool] = {}
        self._failing: dict[Site, bool] = {}
        # Whether some of that is raised whatever the program is told.
        self._fails_always = False
        # Who is told of what tasks raise that have yet to run.
        self._waiting: set[Site] = set()
        # Where one of several such failures was raised.
        self._failed_at: Site | None = None

    # -- which tasks fail ---------------------------------------------------------------------------------------------

    def statement(self, node: ir.Stmt, state: State, frame: Frame) -> list[State]:
        """Run one statement, which may raise."""
        match node:
            case ir.Raise(exc=ir.Expr() as made):
                self._raises_in_task(self._differs(made, state, frame), Site(frame.module, node.ordinal), state, frame)
            case ir.Assert(message=ir.Expr() as message) if not isinstance(message, ir.Const):
                self._raises_in_task(True, Site(frame.module, node.ordinal), state, frame, is_check=True)
            case ir.Try(handlers=(_, *_)):
                named = any(handler.name is not None for handler in node.handlers)
                self._naming, self._catching = self._naming + named, self._catching + 1
                before = set(self.record.launches)
                states = super().statement(node, state, frame)
                self._naming, self._catching = self._naming - named, self._catching - 1
                self._may_quote(node.handlers, before, Site(frame.module, node.ordinal), state)
                return states
        return super().statement(node, state, frame)

    def gives_back(self, children: Iterable[tuple[State, Value]], raised: Iterable[tuple[State, Raised]]) -> None:
        """Workers have ended; where a task has failed and the program handles that, others have gone on."""
        raised = list(raised)
        super().gives_back(children, raised)
        shown = self._deeds[-1].public if self._deeds else ()
        if not raised or not self._catching or not any(done.act is not Act.READS for done in shown):
            return
        for watch in self._reading(raised[0][0]):
            if watch.many:
                self._asked.setdefault(Doubt(Why.GOES_ON, "", watch.launch.anchor))

    def _may_quote(
        self, handlers: tuple[ir.Handler, ...], before: set[tuple[Site, str]], site: Site, state: State
    ) -> None:
        """What a handler is given has the traceback of the worker in its text, from some launchers."""
        begun = (found for key, found in self.record.launches.items() if key not in before)
        if self._is_started(state) or not any(found.family in _QUOTES for found in begun):
            return
        for handler in handlers:
            if handler.name is not None:
                self._quotes(f"str({handler.name})", site, state)

    def _quotes(self, name: str, site: Site, state: State) -> None:
        self._asked.setdefault(Doubt(Why.ROWS, name, site))
        if self._has_own_errors(state):
            self._asked.setdefault(Doubt(Why.NAME, name, site))

    def _differs(self, made: ir.Expr, state: State, frame: Frame) -> bool:
        """Whether what is raised may be another thing for each task: not a class, nor one with constants only."""
        match made:
            case ir.Call(args=args):
                return any(not isinstance(arg.value, ir.Const) for arg in args)
            case ir.Name(id=name):
                value = self.lookup(name, state, frame.scope) or (Lib(f"builtins.{name}"),)
                return not all(_is_class(atom, state) for atom in value)
        return False

    def _raises_in_task(self, differs: bool, site: Site, state: State, frame: Frame, is_check: bool = False) -> None:
        if not self._is_one_of_many(state):
            return
        if frame.tries:
            self._on_the_way[site] = differs
            return
        self._failing[site] = differs
        for waiting in self._waiting if self._differ() else ():
            self._tells(waiting)
        watch = self._watch(state)
        asked = set(state.facts) - set(watch.launch.parent.facts if watch is not None else ())
        self._fails_always = self._fails_always or not (asked or is_check)

    def _is_one_of_many(self, state: State) -> bool:
        return bool(self._watches) and (self._shared_out(state) is not None or state.process.siblings != 1)

    def ends_task(self, raised: bool) -> None:
        """A worker has ended a task; ``raised``: with something that nothing in it caught."""
        super().ends_task(raised)
        if raised:
            self._failing.update(self._on_the_way)
        self._on_the_way = {}

    # -- who is told --------------------------------------------------------------------------------------------------

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may raise what one of its tasks raised, or tell what was raised."""
        path = self.library.canonical(call.path)
        results = super().library_call(call)
        self._may_tell(path, call.args, call.site, call.state)
        return results

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        results = super()._foreign(path, atom, given)
        self._may_tell(path, given.args, given.site, given.state)
        return results

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        match atom:
            case Unknown(sym=(_, ".", str(name))):
                self._may_tell(f"?.{name}", given.args, given.site, given.state)
        return super()._call_atom(atom, given)

    def _may_tell(self, path: str, args: list[Value], site: Site, state: State) -> None:
        has = self.library.traits.has
        if self._is_started(state):
            return
        if self._failed_at is not None and has(path, "tells-failure"):
            self._tells(self._failed_at)
        if not has(path, "fails-first") or self._is_one_task(args, state):
            return
        if not self._differ():
            self._waiting |= {site} if path.endswith(_LATER) else set()
            return
        self._failed_at = site
        # Handlers choose by the class.
        is_told = self._naming if len(self._failing) < 2 else self._catching
        if is_told or self._fails_always or path.endswith(_LATER):
            self._tells(site)

    def _differ(self) -> bool:
        """Whether what two tasks raise may differ."""
        return len(self._failing) > 1 or any(self._failing.values())

    def _is_one_task(self, args: list[Value], state: State) -> bool:
        tasks = self.exact_items(args[1], state) if len(args) > 1 else None
        return tasks is not None and len(tasks) < 2

    def _tells(self, site: Site) -> None:
        self._asked.setdefault(Doubt(Why.FAILS, "", site))


def _is_class(atom: Atom, state: State) -> bool:
    return isinstance(atom, Lib) or (isinstance(atom, Ref) and isinstance(state.get(atom), Class))
