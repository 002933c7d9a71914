"""What functions of libraries leave behind in their process, as the models say."""

from __future__ import annotations

import re
import sys
from collections.abc import Hashable

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Call, Frame
from cudalint.machine.heap import Dict
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.ledger import Handed
from cudalint.machine.inheritance.reads import Reads
from cudalint.machine.inheritance.sameness import is_bare
from cudalint.machine.interpreter import Setting
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Ref, Tensor, strings
from cudalint.models.library import ProcessEffect

# Variables of the environment that are read when they are needed, not when a library is imported.
_READ_LATE = frozenset({"MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK", "WORLD_SIZE"})
_HANDED = {"folder": Handed.FOLDER, "path": Handed.PATH, "kept": Handed.KEPT}
_SETS_VARIABLES = frozenset({"environ.set", "environ.update"})
# Functions of these look at files, whose paths may be relative; these of them do not.
_OF_FILES = frozenset(
    {"os", "pathlib", "glob", "io", "tempfile", "shutil", "zipfile", "tarfile", "sqlite3", "importlib", "?"}
)
_OF_NO_FILES = frozenset(
    {
        "os.path.join", "os.path.dirname", "os.path.basename", "os.path.split", "os.path.splitext", "os.path.isabs",
        "os.path.normpath", "os.path.normcase", "os.path.commonpath", "os.path.expanduser", "os.fspath", "os.fsencode",
        "os.fsdecode", "os.getpid", "os.getppid", "os.cpu_count", "os.uname", "os.getuid", "os.sched_getaffinity",
        "pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "pathlib.PurePosixPath", "pathlib.Path.home",
        "?.split", "?.strip", "?.lower", "?.upper", "?.replace", "?.format", "?.startswith", "?.endswith",
        "?.joinpath", "?.with_suffix", "?.with_name", "?.items", "?.keys", "?.values", "?.get",
    }
)  # fmt: skip
# What enters a manager that does nothing but to its process, as ``torch.no_grad()`` gives one.
_ENTERED = "cudalint.identity.__enter__"
_READS_FILES = re.compile(r"open|load|read|from_|file|dir|path", re.IGNORECASE)


class ProcessEffects(Reads):
    """A machine that knows what calls of libraries leave behind; one that no model describes may leave anything."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # The top-level packages that were imported, whatever imported them.
        self._imported: set[str] = {"python"}
        # The names of the functions and classes of the program.
        self._functions: set[str] = set()
        self._managers: list[Site] = []
        self._decorating: Site | None = None
        # What is in force while decorated functions last, and what feels it; by where they, or decorators, stand.
        self._scopes: dict[Site, tuple[str, tuple[str, ...]]] = {}

    def _effect_of(self, path: str, receiver: Atom | None) -> ProcessEffect | None:
        """What a call does to its process; what is done to an array stays in it."""
        owner, _, name = path.rpartition(".")
        if path == _ENTERED:
            # A manager that was made elsewhere.
            return None
        if isinstance(receiver, Tensor) or path.startswith("cudalint."):
            return ProcessEffect()
        if name == "__init__":
            return (
                ProcessEffect()
                if is_bare(owner)
                else self.library.process_effect(path) or self.library.process_effect(owner)
            )
        return self.library.process_effect(path)

    def _calls_unknown(self, name: str, site: Site, state: State) -> None:
        self._note(Why.CALLS, name, site, state)
        self._repeats(name, site, state)
        self._may_look(name, site, state)

    def _may_look(self, name: str, site: Site, state: State) -> None:
        """A worker calls something that may tell how its process was started, or what that has of its parent."""
        for watch in self._reading(state):
            watch.doubts.setdefault(Doubt(Why.LOOKS, name, site))

    def _calls_unshown(self, sym: Hashable, site: Site, state: State) -> ProcessEffect | None:
        """A call of a value that the code does not show; what it leaves behind, where it is a method of such a name."""
        match sym:
            case (base, ".", str(name)) if name not in self._functions or self._is_file(base):
                effect = self.library.process_effect(f"?.{name}")
                self._looks_at_files(f"?.{name}", state)
                if effect is not None:
                    self._leaves(effect, f"?.{name}", site, state)
                    return effect
                self._calls_unknown("", site, state)
            case _:
                self._calls_unknown("", site, state)
                self._is_unshown("", site, state)
        return None

    def _is_file(self, sym: Hashable) -> bool:
        """Whether a value is a file that a library opened: its methods are none of the program's."""
        match sym:
            case ("call", Site(), _, _, str(path), *_):
                return self.library.traits.has(path, "opens-file")
        return False

    def _calls_object(self, path: str, site: Site, state: State) -> None:
        self._calls_by_name(path, state)
        if self.library.function(path) is not None:
            return
        effect = self._effect_of(path, None)
        if effect is None:
            self._calls_unknown("", site, state)
        else:
            self._leaves(effect, path, site, state)

    def _leaves(self, effect: ProcessEffect, path: str, site: Site, state: State) -> None:
        """What a library function is known to do to its process."""
        name = "" if self.library.traits.has(path, "named-as-written") else shown(path)
        if effect.shows:
            self._repeats(name, site, state)
            self._prepares(name, site, state, shows=True)
        self._calls_by_name(path, state)
        match effect.state:
            case "process":
                self._note(Why.SETS, name, site, state, felt_by=effect.felt_by)
            case "folder" | "path" | "kept" as kind:
                handed = _HANDED[kind]
                # What a module sets when it is imported it sets anew, over what the process was handed.
                self._notices(handed, state)
                self._note(Why.SETS, name, site, state, handed=handed)
            case "seed":
                self._note(Why.SEEDS, name, site, state)
            case "scope" if site == self._decorating:
                self._scopes[site] = (name, effect.felt_by)
            case "scope":
                self._note(Why.SETS, name, site, state, ends=site in self._managers)

    def _calls_by_name(self, path: str, state: State) -> None:
        for watch in self._reading(state):
            watch.called.add(path)

    def _prepares(self, name: str, site: Site, state: State, shows: bool = False) -> None:
        """A forking executor starts all its workers at once, one of fresh processes as many as are needed.

        The first worker of a pool may have done all work, and end it, before the others begin.
        """
        launch = state.process.launch
        is_shown = launch is not None and launch.family == "pool" and shows
        if launch is None or launch.stage != "initializer" or not (launch.family == "executor" or is_shown):
            return
        for watch in self._reading(state):
            if watch.launch.made not in self._alone:
                watch.doubts.setdefault(Doubt(Why.FEWER, name, site))

    def _reflects(self, path: str, site: Site, state: State) -> None:
        if self.library.traits.has(path, "reflects"):
            self._is_unshown(shown(path), site, state)

    def _sets_environment(self, call: Call, does: str) -> None:
        """A library that reads a variable when it is imported finds another value in a fresh process."""
        if does in ("environ.get", "environ.contains", "environ.preset"):
            return
        if does == "environ.update":
            names = {str(n) for n in call.kwargs}
            dicts = [call.state.get(a) for v in call.args for a in v if isinstance(a, Ref)]
            names |= {str(k) for d in dicts if isinstance(d, Dict) and d.exact for k in d.items}
            whole = all(isinstance(d, Dict) and d.exact for d in dicts) and len(dicts) == len(call.args)
        else:
            names = set(strings(call.args[0])) if call.args else set()
            whole = bool(names)
        if whole and names <= _READ_LATE:
            return
        shown = f"os.environ[{sorted(names - _READ_LATE)[0]!r}]" if names - _READ_LATE else "os.environ"
        read = any(self.library.reads_at_import(root, name) for root in self._imported for name in names - _READ_LATE)
        # What is set beside os.environ is not seen in it, until another process begins with it.
        known = whole and not read and does in _SETS_VARIABLES and call.path.startswith("os.environ")
        handed = Handed.ENVIRONMENT if known else None
        self._note(Why.STORES, shown, call.site, call.state, handed=handed)

    def _looks_at_files(self, path: str, state: State) -> None:
        if takes_from_folder(path):
            self._notices(Handed.FOLDER, state)

    def _library_import(self, dotted: str, state: State, frame: Frame, ordinal: int) -> list[State]:
        root = dotted.partition(".")[0]
        self._imported.add(root)
        if not self._is_silent(dotted):
            self._repeats(f"import {dotted}", Site(frame.module, ordinal), state)
        if frame.guards_import:
            self._notices(Handed.PATH, state)
        if frame.function is not None and root not in sys.stdlib_module_names and not self.library.knows(root):
            self._note(Why.IMPORTS, dotted, Site(frame.module, ordinal), state)
        return super()._library_import(dotted, state, frame, ordinal)

    def _is_silent(self, dotted: str) -> bool:
        """Whether the import of a library shows nothing, as far as anything says so."""
        root, has = dotted.partition(".")[0], self.library.traits.has
        if has(dotted, "shows-at-import"):
            return False
        return root in sys.stdlib_module_names or self.library.describes(root) or has(root, "silent-at-import")

    def _library_import_from(self, node: ir.ImportFrom, state: State, frame: Frame) -> list[State]:
        if node.level:
            self._imported.add("")
        return super()._library_import_from(node, state, frame)


def takes_from_folder(path: str) -> bool:
    """Whether a function may take a file from the working folder, by its name."""
    root, _, name = path.removeprefix("builtins.").partition(".")
    if path in _OF_NO_FILES or path.startswith("os.environ"):
        return False
    return root in _OF_FILES or path.startswith("sys.path.") or _READS_FILES.search(name or root) is not None


def shown(path: str) -> str:
    """A name as a program writes it; nothing where it is the machine's own."""
    if path.startswith("cudalint."):
        return ""
    return path.removeprefix("builtins.").removeprefix("?.")
