"""Beginnings and ends: how long workers are waited for, what imports change twice, what processes do at their end."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine.effects.receivers import starter
from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.ledger import Handed
from cudalint.machine.inheritance.names import Names
from cudalint.machine.inheritance.process_effects import shown
from cudalint.machine.inheritance.sameness import known
from cudalint.machine.interpreter import Setting
from cudalint.machine.launch.crossing import visited
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Atom, Bound, Const, Lib, Unknown, Value, const, constant

# What gives a part of a path that does not begin where that begins.
_MAKES_RELATIVE = frozenset({"basename", "relpath", "relative_to", "name", "stem", "suffix", "parts"})


class Times(Names):
    """A machine that notes what depends on when a process starts, how often its modules run, and when it ends."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # Where processes were made that end with their parent and were started, and that something waited for.
        self._daemons: set[Site] = set()
        self._awaited: set[Site] = set()
        # The variables of the environment that the import of a fresh process sets.
        self._set_again: set[str] = set()
        # Whether that adds to where modules are looked for, which it has from its parent.
        self._adds_folders = False

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        match atom:
            case Unknown(sym=(_, ".", str(name))):
                self._waits(f"?.{name}", given.args, given.kwargs.get("timeout"), given.site)
        return super()._call_atom(atom, given)

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may wait for a worker, or be done again by a fresh process."""
        path = self.library.canonical(call.path)
        self._waits(path, call.args, call.get("timeout"), call.site)
        self._begins_and_ends(path, call.args, call.kwargs, call.site, call.state)
        if call.text("does") == "process.start":
            self._starts_daemon(call)
        return super().library_call(call)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        self._waits(path, given.args, given.kwargs.get("timeout"), given.site)
        self._begins_and_ends(path, given.args, given.kwargs, given.site, given.state)
        return super()._foreign(path, atom, given)

    # -- how long is waited --------------------------------------------------------------------------------------

    def _waits(self, path: str, args: list[Value], timeout: Value | None, site: Site) -> None:
        traits = self.library.traits
        if path == "time.sleep":
            if any(found.family == "process" for found in self.record.launches.values()):
                self._asked.setdefault(Doubt(Why.WAITS, "", site))
            return
        if traits.has(path, "runs-later"):
            self._asked.setdefault(Doubt(Why.WAITS, "", site))
        is_unshown = path.startswith("?.")
        if not is_unshown and not traits.has(path, "of-workers"):
            return
        waits = traits.of(path, "waits")
        place = waits.place if waits is not None and not traits.has(path, "also-of-others") else None
        if timeout is None and place is not None:
            timeout = args[place] if place < len(args) else None
        if waits is not None and timeout not in (None, NONE) and constant(timeout or ()) != 0:
            self._asked.setdefault(Doubt(Why.WAITS, "", site))
        elif traits.has(path, "awaits"):
            self._awaited |= self._daemons

    def _starts_daemon(self, call: Call) -> None:
        found = starter(call.receiver, call.state)
        if found is not None and constant(found.fields.get("daemon", NONE)) not in (None, False):
            self._daemons.add(found.site)

    def _unawaited(self, anchor: Site) -> bool:
        return anchor in self._daemons - self._awaited

    # -- what is done again, and at the end ----------------------------------------------------------------------

    def _begins_and_ends(
        self, path: str, args: list[Value], kwargs: dict[str, Value], site: Site, state: State
    ) -> None:
        traits = self.library.traits
        if traits.has(path, "runs-at-end"):
            self._repeats(shown(path), site, state)
            for watch in self._reading(state):
                watch.doubts.setdefault(Doubt(Why.AT_END, shown(path), site))
        if traits.has(path, "runs-at-fork"):
            self._asked.setdefault(Doubt(Why.AT_FORK, shown(path), site))
        if traits.has(path, "changes-inherited"):
            self._changes_again(path.rpartition(".")[0], site, state)
        kept = traits.has(path, "kept-by-system") and not all(map(known, args))
        if kept or traits.has(path, "added-by-system"):
            self._changes_again(f"{path}()", site, state)
        if path == "logging.basicConfig" and constant(kwargs.get("filemode", const("a"))) != "a":
            self._repeats(shown(path), site, state)
        configures = path.startswith("logging.config.")
        if configures and any(_may_open_anew(atom, state) for value in args for atom in visited(value, state)):
            self._repeats(shown(path), site, state)
        if path == "os.chdir" and not _is_one_folder(args):
            self._changes_again("the working folder", site, state)

    def _changes_again(self, name: str, site: Site, state: State) -> None:
        watch = self._watch(state)
        if watch is not None and self._at_import(watch):
            watch.doubts.setdefault(Doubt(Why.AGAIN, name, site))

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
        if name == "sys.argv":
            self._changes_again(name, site, state)
        watch = self._watch(state)
        if watch is not None and watch.booting:
            self._adds_folders = self._adds_folders or name.startswith("sys.path")
            if name.startswith("os.environ["):
                self._set_again.add(name[len("os.environ['") : -len("']")])
        super()._note(why, name, site, state, ends, handed, felt_by)

    def _library_attribute(self, path: str, name: str, state: State, frame: Frame, site: Site) -> Results:
        if self._adds_folders and (path, name) == ("sys", "path"):
            self._is_called("sys.path", site, state)
        return super()._library_attribute(path, name, state, frame, site)

    def delete_item(self, owner: Value, key: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``del sys.path[i]``, which an import of main does once more."""
        if any(isinstance(atom, Lib) and atom.path == "sys.path" for atom in owner):
            self._changes_again("sys.path", site, state)
        return super().delete_item(owner, key, state, frame, site)

    def has_booted(self, children: list[State]) -> None:
        """The process that began last has imported what it begins with: its environment is that of its parent still."""
        parent = self._watches[-1].launch.parent.process
        for child in children:
            for name, value in child.process.environment:
                there = parent.environ(name)
                again = name in self._set_again and not known(value)
                if there is not None and (there != value or again):
                    doubt = Doubt(Why.AGAIN, f"os.environ[{name!r}]", self._watches[-1].launch.anchor)
                    self._watches[-1].doubts.setdefault(doubt)
        super().has_booted(children)

    def _stores_into(self, address: Hashable, site: Site, state: State, lossy: bool = False) -> None:
        for watch in self._reading(state) if self._watches and not self._importing else ():
            homes = [s for states in watch.loaded.values() for s in states] if watch.launch.method == "loky" else ()
            owner = address[0] if isinstance(address, tuple) and len(address) == 2 else address
            if any(home.at(address) is not None or home.at(owner) is not None for home in homes):
                watch.doubts.setdefault(Doubt(Why.REUSED, "", site))
        super()._stores_into(address, site, state, lossy)


def _is_one_folder(args: list[Value]) -> bool:
    """Whether a path means the same folder from wherever it is taken."""
    return not args or (known(args[0]) and all(map(_begins_at_root, args[0])))


def _may_open_anew(atom: Atom, state: State) -> bool:
    """Whether a part of what is said of messages is not shown, or opens a file anew."""
    match atom:
        case Const(value=str(text)):
            return set(text) <= set("wtbx+") and bool(set(text) & set("wx"))
        case Unknown():
            return True
    return False


def _begins_at_root(part: Hashable) -> bool:
    """Whether a path is shown to be an absolute one: by what it begins with."""
    match part:
        case Const(value=str(text)):
            return text.startswith(("/", "~"))
        case Unknown(sym=sym):
            return _begins_at_root(sym)
        case ("__file__", _) | ("follows", "pathlib.Path.home"):
            return True
        case ("follows", str(path), (first, *_), *_):
            return path.rpartition(".")[2] not in _MAKES_RELATIVE and _begins_at_root(first)
        case ("follows", (inner, ".", str(name)), *_) | (inner, ".", str(name)):
            return name not in _MAKES_RELATIVE and _begins_at_root(inner)
        case (("bin", *_), str(), (first, *_), tuple()) | (("joined", *_), ((first, *_), *_)):
            return _begins_at_root(first)
    return False
