"""Names that differ: of processes, of the main module and what it defines, of how a process was started."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from collections.abc import Sequence as Seq

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.heap import Class, Closure, Dict, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.process_effects import shown
from cudalint.machine.inheritance.sameness import as_main, is_logger
from cudalint.machine.inheritance.submodules import Submodules
from cudalint.machine.interpreter import Setting
from cudalint.machine.launch.crossing import visited
from cudalint.machine.mappings import content_of
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Const, Lib, Member, Ref, Unknown, Value, constant

_PROCESS = "multiprocessing.Process"
_CURRENT = "multiprocessing.current_process"
# What Python says of the main module under its names, which is run as another one in a fresh process.
OF_MAIN = frozenset({"__name__", "__package__", "__spec__", "__loader__", "__builtins__", "__cached__"})
# By these a fresh process finds the main module.
_FINDS_MAIN = frozenset({"__file__", "__spec__"})
# Methods by which an object has a text of its own, and those that objects have which have none.
OWN_TEXTS = ("__repr__", "__str__", "__format__")
_OWN_REPR = ("__repr__",)
_MAKES_REPR = frozenset({"builtins.repr", "builtins.ascii"})
_OF_NO_TEXT = frozenset({"builtins.object.__repr__", "builtins.object.__str__", "builtins.object.__format__"})
_TELLS_CLASSES = frozenset({"builtins.isinstance", "builtins.issubclass"})
# Attributes of classes that lead to those above and below, and of what libraries give that say how it starts workers.
_OF_BASES = frozenset({"__mro__", "mro", "__bases__", "__base__", "__subclasses__"})
_TELLS_METHOD = frozenset({"multiprocessing_context"})
# What tells how this process was started, and what else was imported in it.
_OF_PROCESS = frozenset(
    {
        "sys.modules", "sys.orig_argv", "sys.path_importer_cache", "warnings.filters", "logging.root.manager",
        "logging.Logger.manager", "os.supports_dir_fd", "os.supports_effective_ids", "os.supports_fd",
        "os.supports_follow_symlinks", "copyreg.dispatch_table", "pickle.dispatch_table", "copy.dispatch_table",
    }
)  # fmt: skip
# What tells of a process by which of these means it has started others.
_OF_STARTER = frozenset({"sys.modules"})
_OF_ANY_PROCESS = frozenset({"pid", "ident", "is_alive", "exitcode"})
_PICKLED_BY = frozenset({"__name__", "__qualname__", "__module__"})
# What a format for messages has where the name of the process is to stand, or how long ago that began; and its thread.
_OF_PROCESS_IN_FORMATS = ("processName", "relativeCreated", "__module__")
# What a message tells of its process.
_OF_MESSAGES = frozenset({"processName", "relativeCreated"})
_OF_THREAD_IN_FORMATS = "threadName"
# A forked worker's main thread has the number of the thread that forked it.
_NUMBER_OF_THREAD = "ident"
_NAMES_IN_FORMATS = ("%(name)", "{name", "$name", "${name")


class Names(Submodules):
    """A machine that notes where names are asked for that are other ones in a fresh process."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # What the parent asks about the processes that it starts, whenever it does.
        self._asked: dict[Doubt, None] = {}
        self._named: set[Site] = set()
        # Formats that show in which thread something happened.
        self._threads_shown: dict[Doubt, None] = {}
        # Whether messages show the names of their loggers.
        self._names_loggers = False

    def _differs_in_loky(self, name: str, site: Site, state: State) -> None:
        """A worker of loky is no daemon, and has its parent's standard input."""
        for watch in self._reading(state):
            if watch.launch.method == "loky":
                watch.doubts.setdefault(Doubt(Why.NAME, name, site))

    def _is_called(self, name: str, site: Site, state: State, by_value: bool = False) -> None:
        """``by_value``: what travels by value keeps its name."""
        for watch in self._reading(state):
            if by_value and watch.launch.method == "loky":
                continue
            watch.doubts.setdefault(Doubt(Why.NAME, name, site))

    def finds_by_name(self, module: str, name: str, state: State) -> None:
        """Unpickling looks up a name of a module; what is started as a package has no main module there."""
        super().finds_by_name(module, name, state)
        if module == self.main and module.rpartition(".")[2] == "__main__":
            for watch in self._reading(state):
                watch.doubts.setdefault(Doubt(Why.NAMELESS, name, watch.launch.anchor))

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        if isinstance(atom, Unknown):
            name = atom.sym[2] if isinstance(atom.sym, tuple) and len(atom.sym) == 3 and atom.sym[1] == "." else ""
            self._may_name((*given.args, *given.kwargs.values()), given.site, given.state)
            self._asks_by_name(f"?.{name}", given.kwargs, given.site, given.state)
        return super()._call_atom(atom, given)

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may make text of what it is given, or name a process."""
        path, site, state = self.library.canonical(call.path), call.site, call.state
        if not self.library.traits.has(path, "names-nothing"):
            self._may_name((*call.args, *call.kwargs.values()), site, state)
        self._asks_by_name(path, call.kwargs, site, state)
        self._warns(path, call.args, call.kwargs, call.frame, site, state)
        self._tells_class(path, call.args, site, state)
        if path == "builtins.type" and call.args:
            self._asks_of(call.args[0], "type()", site, state, tells_class=True)
        self._formats((*call.args, *call.kwargs.values()), site)
        self._sets_messages(path, call.args, call.kwargs)
        self._makes_text(path, (*call.args, *call.kwargs.values()), site, state)
        if call.text("does") == "process" and call.get("name") is not None:
            self._named.add(site)
        return super().library_call(call)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        values = (*given.args, *given.kwargs.values())
        if path == "builtins.input":
            self._differs_in_loky("sys.stdin", given.site, given.state)
        self._formats(values, given.site)
        self._sets_messages(path, given.args, given.kwargs)
        self._makes_text(path, values, given.site, given.state)
        self._tells_class(path, given.args, given.site, given.state)
        if not self.library.traits.has(path, "names-nothing"):
            self._may_name(values, given.site, given.state)
        self._asks_by_name(path, given.kwargs, given.site, given.state)
        self._warns(path, given.args, given.kwargs, given.frame, given.site, given.state)
        return super()._foreign(path, atom, given)

    def _warns(
        self, path: str, args: Seq[Value], kwargs: dict[str, Value], frame: Frame, site: Site, state: State
    ) -> None:
        """Some warnings are shown by the name of the module that gives them."""
        filters, gives = (self.library.traits.of(path, kind) for kind in ("filters-modules", "gives-warning"))
        if filters is not None:
            module = _argument(args, kwargs, filters.place, "module")
            text = constant(module)
            if module and (not isinstance(text, str) or "main" in text):
                self._asked.setdefault(Doubt(Why.NAME, f"{shown(path)}()", site))
        elif gives is not None and (frame.module == self.main or len(args) > 2 or "stacklevel" in kwargs):
            # A message may be a warning itself.
            category = _argument(args, kwargs, gives.place, "category") or _argument(args, kwargs, 0, "message")
            if any(self._may_deprecate(atom, state) for atom in category):
                self._is_called(f"{shown(path)}()", site, state)

    def _may_deprecate(self, atom: Atom, state: State) -> bool:
        """Whether something is a warning, or a class of warnings, that only the main module's users are shown."""
        match atom:
            case Lib(path=path) | Unknown(sym=("call", _, _, _, str(path), *_)):
                return path.endswith("DeprecationWarning")
            case Ref():
                found = state.get(atom)
                cls = found.cls if isinstance(found, Instance) else atom
                base = self.library_base(cls, state) if isinstance(state.get(cls), Class) else None
                return base is not None and base.endswith("DeprecationWarning")
        return False

    def _asks_by_name(self, path: str, kwargs: dict[str, Value], site: Site, state: State) -> None:
        name = path.rpartition(".")[2]
        if name == "get_start_method":
            self._asked.setdefault(Doubt(Why.NAME, "", site))
        if self.library.traits.has(path, "tells-thread"):
            for watch in self._reading(state):
                if watch.launch.parent.process.in_thread:
                    watch.doubts.setdefault(Doubt(Why.NAME, "", site))
        shows_error = path.startswith("traceback.") or name == "exception" or "exc_info" in kwargs
        if "stack_info" in kwargs:
            self._is_called("", site, state)
        if shows_error:
            self._shows_error("", site, state)

    def _shows_error(self, name: str, site: Site, state: State) -> None:
        """A traceback is shown, of a process or, where it starts some, of one of its workers."""
        if self._begin_in_handlers and not self._is_started(state):
            self._asked.setdefault(Doubt(Why.HANDLES, "", site))
        if not self._has_own_errors(state):
            return
        self._is_called(name, site, state)
        if self.record.launches:
            self._asked.setdefault(Doubt(Why.NAME, name, site))

    def _has_own_errors(self, state: State) -> bool:
        """Whether the main module defines exceptions, which tracebacks name with their module."""
        bases = (self.library_base(cls, state) or "" for cls in self._own_classes(state))
        return any(base.endswith(("Exception", "Error", "Warning")) for base in bases)

    def _own_classes(self, state: State) -> list[Ref]:
        scope = state.get(Ref(("module", self.main)))
        values = scope.variables.values() if isinstance(scope, Scope) else ()
        atoms = (atom for value in values for atom in value)
        return [
            a for a in atoms if isinstance(a, Ref) and isinstance(c := state.get(a), Class) and c.module == self.main
        ]

    def _formats(self, values: Iterable[Value], site: Site) -> None:
        texts = [text for text in map(constant, values) if isinstance(text, str)]
        for name in _OF_PROCESS_IN_FORMATS:
            if any(name in text for text in texts):
                self._asked.setdefault(Doubt(Why.NAME, name, site))
        if any(_OF_THREAD_IN_FORMATS in text for text in texts):
            self._threads_shown.setdefault(Doubt(Why.NAME, _OF_THREAD_IN_FORMATS, site))

    def _sets_messages(self, path: str, args: Iterable[Value], kwargs: dict[str, Value]) -> None:
        """Something says how messages are written, perhaps with the names of their loggers."""
        if not path.startswith("logging."):
            return
        texts = [text for text in map(constant, (*args, *kwargs.values())) if isinstance(text, str)]
        by_default = path == "logging.basicConfig" and "format" not in kwargs
        named = any(mark in text for text in texts for mark in _NAMES_IN_FORMATS)
        self._names_loggers = self._names_loggers or by_default or named or path.startswith("logging.config.")

    def _tells_class(self, path: str, args: Seq[Value], site: Site, state: State) -> None:
        if path in _TELLS_CLASSES and len(args) > 1 and self._may_be_class_of_processes(args[1], state):
            self._tests_class(args[0], f"{shown(path)}()", site, state)

    def _may_be_class_of_processes(self, value: Value, state: State) -> bool:
        """Whether a class, or one of several, may be what each start method has a class of its own for."""
        for atom in visited(value, state):
            path = self.library.canonical(atom.path) if isinstance(atom, Lib) else ""
            of_methods = path.endswith("Process") and not path.endswith("BaseProcess")
            if isinstance(atom, Unknown) or of_methods:
                return True
        return False

    def _asks_of(self, value: Value, what: str, site: Site, state: State, tells_class: bool = False) -> None:
        """Something tells what a process is: its name, or its class."""
        for atom in value:
            found = state.get(atom) if isinstance(atom, Ref) else None
            is_named = isinstance(found, LibraryObject) and found.site in self._named and not tells_class
            is_context = isinstance(found, LibraryObject) and found.type.endswith(".context") and tells_class
            is_process = isinstance(found, LibraryObject) and found.type == _PROCESS and not is_named
            if is_context or is_process:
                self._asked.setdefault(Doubt(Why.NAME, what, site))

    def _tests_class(self, value: Value, what: str, site: Site, state: State) -> None:
        """A class is looked for in what a process is, also in what a class of the program is below."""
        self._asks_of(value, what, site, state, tells_class=True)
        if any(self._is_below_process(atom, state) for atom in value):
            self._asked.setdefault(Doubt(Why.NAME, what, site))

    def _is_below_process(self, atom: Atom, state: State) -> bool:
        """Whether something is a class of the program below that of processes, or an instance of one."""
        found = state.get(atom) if isinstance(atom, Ref) else None
        cls = found.cls if isinstance(found, Instance) else atom
        base = self.library_base(cls, state) if isinstance(cls, Ref) and isinstance(state.get(cls), Class) else None
        return base is not None and self.library.canonical(base) == _PROCESS

    def _cases(self, node: ir.Match, subject: Value, state: State, frame: Frame) -> list[State]:
        """The patterns of a ``match``, which may be classes."""
        if not all(case.irrefutable or case.values for case in node.cases):
            self._tests_class(subject, "", Site(frame.module, node.subject.ordinal), state)
        return super()._cases(node, subject, state, frame)

    def shows(self, values: Iterable[Value], site: Site, state: State) -> None:
        """Values are made into text: sets in their order, classes with their module, processes with their name."""
        for value in values:
            self._takes_order(value, site, state)
        self._may_name(values, site, state)
        self._shows_objects(values, site, state)

    def _makes_text(self, path: str, values: Seq[Value], site: Site, state: State) -> None:
        """A function of a library makes text of what it is given, now or when that is shown."""
        if path in _OF_NO_TEXT:
            self._shows_objects(values, site, state, own=())
        elif path in _MAKES_REPR:
            self._shows_objects(values, site, state, own=_OWN_REPR)
        elif self.library.traits.has(path, "makes-text"):
            self._shows_objects(values, site, state)

    def construct(self, ref: Ref, cls: Class, given: Given) -> Results:
        """A new instance; the text of an exception is what it is made of."""
        base = self.library_base(ref, given.state) or ""
        if self.library.traits.has(base, "makes-text"):
            self._shows_objects(given.args, given.site, given.state)
        # Whatever a class of the program's own makes of messages.
        self._names_loggers = self._names_loggers or base.startswith("logging.")
        return super().construct(ref, cls, given)

    def _shows_objects(
        self, values: Iterable[Value], site: Site, state: State, own: tuple[str, ...] = OWN_TEXTS
    ) -> None:
        """An object that has no text of its own shows the module of its class, and so does a class.

        ``own`` are the methods that may give it a text; what lies in containers is shown by its ``__repr__``.
        """
        if not self._is_started(state):
            return
        shown = [(atom, own) for value in values for atom in value]
        seen: set[Atom] = set()
        while shown:
            atom, texts = shown.pop()
            if atom in seen:
                continue
            seen.add(atom)
            for name in self._names_main(atom, texts, state):
                self._is_called(name, site, state, by_value=True)
            self._iterates(atom, site, state)
            shown.extend((inner, _OWN_REPR) for inner in self._shown_within(atom, texts, state))

    def _names_main(self, atom: Atom, own: tuple[str, ...], state: State) -> Iterator[str]:
        """What of the main module the text of something names."""
        match atom, state.get(atom) if isinstance(atom, Ref) else None:
            case Unknown(sym=sym), _:
                yield from self._named_in_unknown(sym, state)
            case _, Class(module=module, name=name) if module == self.main:
                yield f"{name}.__module__"
            case Bound(function=method), _:
                held = state.get(method) if isinstance(method, Ref) else None
                if isinstance(held, Closure):
                    yield f"repr({held.function.name})"
            case _, Closure(kind="function", function=function):
                # Where it lies in memory.
                yield f"repr({function.name})"
            case _, Instance(cls=cls) as found if not self._has_text(found, own, state):
                made = state.get(cls)
                if isinstance(made, Class) and not made.is_dataclass:
                    # Elsewhere it is not the name that differs, but the place in memory.
                    yield f"{made.name}.__module__" if made.module == self.main else f"repr({made.name}())"

    def _shown_within(self, atom: Atom, own: tuple[str, ...], state: State) -> Iterator[Atom]:
        """What the text of something shows of what it holds."""
        match atom, state.get(atom) if isinstance(atom, Ref) else None:
            case Const(value=Member(value=value)), _:
                yield from value
            case _, Instance(cls=cls, attributes=attributes) as found if not self._has_own_text(found, own, state):
                made = state.get(cls)
                if isinstance(made, Class) and made.is_dataclass:
                    yield from (inner for value in attributes.values() for inner in value)
                held = content_of(atom, state)
                if held is not None:
                    yield held
            case _, Sequence() | Dict():
                yield from (inner for value in self._rows((atom,), state) for inner in value)

    def _has_text(self, found: Instance, own: tuple[str, ...], state: State) -> bool:
        """Whether an object has a text of its own, or one that its class has from a library."""
        if self._has_own_text(found, own, state):
            return True
        base = self.library_base(found.cls, state) if own else None
        return base is not None and self.library.traits.has(base, "has-text")

    def _has_own_text(self, found: Instance, own: tuple[str, ...], state: State) -> bool:
        return any(self.user_method(found, name, state) is not None for name in own)

    def _named_in_unknown(self, sym: Hashable, state: State) -> Iterator[str]:
        match sym:
            case ("class", str(name), str(attribute)) if attribute in _OF_BASES and self._own_classes(state):
                yield f"{name}.{attribute}"
            case ("follows", "logging.getLogger", *_) if as_main(sym) != sym:
                yield "__name__"
            case (_, *_, "__annotations__") if self._own_classes(state):
                yield "__annotations__"
            case (Lib(), "[]", tuple(key)):
                # The types that a type is made of.
                yield from (name for a in key if isinstance(a, Ref) for name in self._names_main(a, (), state))

    def _may_name(self, values: Iterable[Value], site: Site, state: State) -> None:
        for atom in (a for value in values for a in (*value, *(b for v in self._rows(value, state) for b in v))):
            self._asks_of((atom,), "", site, state)
            is_class = isinstance(atom, Unknown) and isinstance(atom.sym, tuple) and atom.sym[0] == "type"
            if is_class and self._own_classes(state):
                self._is_called("type()", site, state)
            owner = atom.receiver if isinstance(atom, Bound) else atom
            found = state.get(owner) if isinstance(owner, Ref) else None
            if isinstance(found, Class) and found.module == self.main:
                self._is_called(f"{found.name}.__module__", site, state, by_value=True)

    def _rows(self, value: Value, state: State) -> Iterable[Value]:
        for atom in value:
            found = state.get(atom) if isinstance(atom, Ref) else None
            if isinstance(found, Sequence):
                yield from (*(found.items or ()), found.element)
            elif isinstance(found, Dict):
                yield from (*found.items.values(), found.element)

    def _combine(self, op: str, left: Value, right: Value, state: State, frame: Frame, ordinal: int) -> Value:
        if op == "%":
            self.shows((right,), Site(frame.module, ordinal), state)
        return super()._combine(op, left, right, state, frame, ordinal)

    def _object_attribute(self, ref: Ref, name: str, state: State, frame: Frame, site: Site) -> Results:
        found = state.get(ref)
        match found:
            case LibraryObject(type=kind, fields=fields) if name in ("name", "_name"):
                if kind == _CURRENT:
                    self._is_called("current_process().name", site, state)
                elif name not in fields:
                    self._asks_of((ref,), "", site, state)
            case LibraryObject(type=kind) if kind == _CURRENT and name == "daemon":
                self._is_called("current_process().daemon", site, state)
            case LibraryObject(type=kind) if kind == _CURRENT and name not in _OF_ANY_PROCESS:
                self._differs_in_loky(f"current_process().{name}", site, state)
            case LibraryObject() if name in _TELLS_METHOD:
                self._asked.setdefault(Doubt(Why.NAME, name, site))
            case Class() if name in _OF_BASES and self._is_below_process(ref, state):
                self._asked.setdefault(Doubt(Why.NAME, f"{found.name}.{name}", site))
            case Class() if name == "__subclasses__":
                self._is_unshown(f"{found.name}.{name}", site, state)
            case Class(module=module) | Closure(module=module) if name == "__module__" and module == self.main:
                self._is_called("__module__", site, state)
            case Instance() if name == "__module__":
                self._is_called("__module__", site, state)
        return super()._object_attribute(ref, name, state, frame, site)

    def bind(self, name: str, value: Value, state: State, frame: Frame) -> None:
        """Bind a name, by which a fresh process may look for the main module."""
        if name in _FINDS_MAIN and self._home(name, state, frame.scope) == Ref(("module", self.main)):
            site = Site(frame.module, frame.function.ordinal if frame.function is not None else 0)
            self._asked.setdefault(Doubt(Why.STORES, name, site))
        super().bind(name, value, state, frame)

    def set_attribute(
        self, owner: Value, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> list[State]:
        """``owner.attr = value``; functions and classes are pickled by the names that they bear."""
        if attr in _PICKLED_BY:
            for atom in owner:
                if isinstance(atom, Ref) and isinstance(found := state.get(atom), Closure | Class):
                    name = found.name if isinstance(found, Class) else found.function.name
                    self._asked.setdefault(Doubt(Why.NAME, f"{name}.{attr}", site))
        elif any(isinstance(a, Lib) and self.library.traits.has(f"{a.path}.{attr}", "of-workers") for a in owner):
            self._asked.setdefault(Doubt(Why.REPLACED, "", site))
        elif attr == "__class__" and any(not isinstance(a, Ref) or not _is_instance(a, state) for a in owner):
            # A module of another class has properties, which are not followed.
            self._asked.setdefault(Doubt(Why.STORES, "", site))
        return super().set_attribute(owner, attr, value, state, frame, site)

    def set_item(self, owner: Value, key: Value, value: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``owner[key] = value``; what stands for a module is not followed."""
        if any(isinstance(atom, Lib) and atom.path == "sys.modules" for atom in owner):
            self._asked.setdefault(Doubt(Why.STORES, "", site))
        return super().set_item(owner, key, value, state, frame, site)

    def _library_attribute(self, path: str, name: str, state: State, frame: Frame, site: Site) -> Results:
        if self.library.canonical(path) == _PROCESS and name in _OF_BASES:
            self._asked.setdefault(Doubt(Why.NAME, f"Process.{name}", site))
        if name == "__subclasses__":
            self._is_unshown(f"{shown(path)}.{name}", site, state)
        if (path, name) == ("sys", "stdin"):
            self._differs_in_loky("sys.stdin", site, state)
        if self.library.traits.has(f"{path}.{name}", "of-launchers"):
            self._asked.setdefault(Doubt(Why.NAME, f"{path}.{name}", site))
        if path == "__main__" or f"{path}.{name}" in _OF_PROCESS:
            self._is_called(f"{path}.{name}", site, state)
        if f"{path}.{name}" in _OF_STARTER and self.record.launches:
            self._asked.setdefault(Doubt(Why.NAME, f"{path}.{name}", site))
        return super()._library_attribute(path, name, state, frame, site)

    def _attribute_of(self, atom: Atom, name: str, state: State, frame: Frame, site: Site) -> Results:
        if name == "name" and isinstance(atom, Unknown) and is_logger(atom.sym) and as_main(atom.sym) != atom.sym:
            self._is_called("name", site, state)
        if name in _OF_MESSAGES:
            self._asked.setdefault(Doubt(Why.NAME, name, site))
        if name == _NUMBER_OF_THREAD and self._is_thread(atom):
            self._is_called(name, site, state)
        return super()._attribute_of(atom, name, state, frame, site)

    def _is_thread(self, atom: Atom) -> bool:
        """Whether something is the thread that asks for it, or the main one."""
        match atom:
            case Unknown(sym=("call", _, _, _, str(path), *_)):
                return self.library.traits.has(path, "tells-thread")
        return False

    def _library_import(self, dotted: str, state: State, frame: Frame, ordinal: int) -> list[State]:
        if dotted == "__main__":
            self._is_called("__main__", Site(frame.module, ordinal), state)
        return super()._library_import(dotted, state, frame, ordinal)


def _argument(args: Seq[Value], kwargs: dict[str, Value], place: int | None, name: str) -> Value:
    """An argument by its name or its place; empty where it is not given."""
    return kwargs.get(name) or (args[place] if place is not None and place < len(args) else ())


def _is_instance(ref: Ref, state: State) -> bool:
    return isinstance(state.get(ref), Instance)
