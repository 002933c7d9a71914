"""A model of a package, from running its public functions one by one on the machine."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping

from cudalint.deriving.choosing import Choice, choice, suggestive
from cudalint.deriving.effects import (
    NEEDS_CUDA,
    READS,
    Level,
    fails_in_fork,
    joins_group,
    made,
    may_fail,
    selects_rank,
    shown,
    simple,
    start_methods,
    tensors,
)
from cudalint.deriving.entry import Derived, ModelEntry, Setting, TypeEntry
from cudalint.deriving.launchers import launcher, launches
from cudalint.deriving.package import PackageSource
from cudalint.deriving.subject import Subject
from cudalint.deriving.surface import Definition, Surface
from cudalint.deriving.trials import OutOfSteps, Trial, Trials, Where, probing
from cudalint.ir import nodes as ir
from cudalint.ir.depth import MACHINE, room
from cudalint.machine.heap import Class
from cudalint.machine.interpreter import Host
from cudalint.machine.state import Process
from cudalint.machine.values import Ref, only, unknown
from cudalint.models.library import Library
from cudalint.project.assembling import program
from cudalint.project.import_graph import MOST_REACHED
from cudalint.project.program import FileProgram
from cudalint.structs import replace

_OLDER, _NEWER = Host((3, 10), (3, 10)), Host((3, 14), (3, 14))
_LEVELS = {Level.QUERY: "query", Level.INIT: "init"}
_STARTING = frozenset({"pool", "executor", "process", "loader", "cluster", "environments"})
_MODULE = "torch.nn.Module"
# What happens to CUDA and processes when an instance is used by way of these.
_SPECIAL = frozenset({"__call__", "__getitem__", "__iter__", "__enter__", "__exit__", "__len__"})
# A call takes some hundredths of a second; one that comes to no end, up to a second.
MOST_TRIALS = 25_000
MOST_STEPS = 400_000
# The imports of all its modules.
MOST_IMPORT_STEPS = 100_000
# A function, or a class with its methods.
MOST_STEPS_OF_ONE = 40_000
# What a call leaves behind in its process was not looked at, so that nothing may rest on its leaving nothing.
_LEAVES = ("state", "process")
_DOES_NOTHING = ("does", "nothing")
_COUNTS = re.compile(r"job|worker|proc|parallel|cpu|core|device|cuda|gpu", re.IGNORECASE)
# The keys that say by which arguments the GPU is chosen.
_CHOOSING = frozenset({"device", "when", "default-gpu", "params"})


def derive(source: PackageSource, library: Library) -> Derived:
    """What the public functions of a package do, as a model; ``library`` is what is known of others."""
    models = probing(library, source.package.name)
    files = program(source.sources, models, source.package.root)
    # Each module is imported once for all trials, so that all of them may be in Python's order.
    files.most_imported = MOST_REACHED
    with room(MACHINE):
        deriver = _Deriver(files, models, Surface(files, source.package.name))
        deriver.run()
    gc.collect()
    package = source.package
    entries, weaker = _apart(deriver.entries, library)
    root = package.root
    unknown_parts = [f"{path}: compiled" for path in source.compiled]
    unknown_parts += source.passed_over
    unknown_parts += sorted(f"{os.path.relpath(b.source.path, root)}: {b.reason}" for b in files.broken)
    return Derived(
        package.title,
        package.name,
        package.version,
        deriver.aliases,
        tuple(deriver.types),
        tuple(_together(entries)),
        (*unknown_parts, *deriver.unknown, *weaker),
    )


def _apart(entries: Iterable[ModelEntry], library: Library) -> tuple[list[ModelEntry], list[str]]:
    """The entries without what nothing was seen of although a known model says more, and these in words.

    What does it lies in a compiled part then, or was not followed: such an entry would take the known one's place.
    """
    kept: list[ModelEntry] = []
    weaker: list[str] = []
    for entry in entries:
        said = {name: library.function(name) for name in entry.names} if _DOES_NOTHING in entry.settings else {}
        known = {name: spec["does"] for name, spec in said.items() if spec is not None and spec["does"] != "nothing"}
        weaker += [f"{name}: a known model says {does}, of which nothing was seen" for name, does in known.items()]
        names = tuple(name for name in entry.names if name not in known)
        kept += [replace(entry, names=names)] if names else []
    return kept, weaker


class _Deriver:
    def __init__(self, files: FileProgram, library: Library, surface: Surface) -> None:
        self.files = files
        self.library = library
        self.surface = surface
        self.entries: list[ModelEntry] = []
        self.types: list[TypeEntry] = []
        self.aliases: dict[str, str] = {}
        self.unknown: list[str] = []
        self._called: dict[str, str] = {}
        # Methods of which it is not known whether they use what their instance holds.
        self._undecided: set[str] = set()
        self._older = Trials(self.files, self.library, _OLDER)
        self._newer = Trials(self.files, self.library, _NEWER)

    def run(self) -> None:
        """Look at all public names."""
        public = self.surface.public()
        self._called = {place: names[0] for place, names in public.items()}
        self._imports()
        # What many dots lead to is looked at last: there may be no steps left for it.
        for place, names in sorted(public.items(), key=lambda item: min(name.count(".") for name in item[1])):
            definition = self.surface.definition(place)
            if definition is None or not self._matters(definition.module):
                continue
            if (spent := self._spent()) is not None:
                self.unknown.append(f"{names[0]}: not looked at, as {spent} before")
                continue
            before = len(self.entries) + len(self.types)
            self._look_at(definition, names[0])
            if len(self.entries) + len(self.types) > before:
                home = self.surface.imported_as(definition.module, definition.name)
                self.aliases.update({name: names[0] for name in (*names[1:], home) if name != names[0]})

    def _look_at(self, definition: Definition, name: str) -> None:
        """Say what is defined here, or why it is not known."""
        if not self._older.imported(definition.module):
            self.unknown.append(f"{name}: the import of {definition.module} is more than is followed")
            return
        self._older.most = self._older.steps + MOST_STEPS_OF_ONE
        try:
            self._definition(definition, name)
        except OutOfSteps:
            self.unknown.append(f"{name}: more than is followed")
        except Exception as error:
            # One function must not cost all others their entries.
            self.unknown.append(f"{name}: cudalint failed on it: {type(error).__name__}")

    def _spent(self) -> str | None:
        """What was spent, where that is all that is spent on one package."""
        if self._older.made + self._newer.made > MOST_TRIALS:
            return f"{MOST_TRIALS:,} calls were tried"
        return f"{MOST_STEPS:,} steps were run" if self._older.steps + self._newer.steps > MOST_STEPS else None

    def _definition(self, definition: Definition, name: str) -> None:
        if isinstance(definition.node, ir.ClassDef):
            self._class(definition, definition.node, name)
        else:
            self._function(self._subject(definition, definition.node), name)

    def _matters(self, module: str) -> bool:
        if self.files.effects.reaches_gpu(module):
            return True
        return any(self.files.facts(n).may_launch for n in (module, *self.files.graph.reach(module)))

    def _subject(
        self, definition: Definition, function: ir.Function | None, method: str = "", reads: bool = False
    ) -> Subject:
        return Subject(self._older, self._newer, definition.module, definition.name, function, method, reads=reads)

    # -- imports ---------------------------------------------------------------------------------

    def _imports(self) -> None:
        """Say what imports do, those of packages before those of what lies in them."""
        modules = sorted(filter(self._matters, self.surface.modules()), key=lambda name: (name.count("."), name))
        for done, module in enumerate(modules):
            if self._older.import_steps > MOST_IMPORT_STEPS:
                self.unknown.append(f"what the imports of {len(modules) - done} modules do: not looked at")
                return
            self._import(module)

    def _import(self, module: str) -> None:
        """What importing a module does, beyond what importing its package does."""
        parents = self.files.parents(module)
        before = self._imported(parents[-1]) if parents else Process()
        after = self._imported(module)
        named = f"import {module}"
        for library, method in after.methods:
            if method.names is not None and before.method(library).names != method.names and len(method.names) == 1:
                self._add((named,), (("does", "method.set"), ("library", library), ("method", method.names[0])))
        level = Level.INIT if after.initialised else Level.QUERY if after.driver is not None else Level.NONE
        known = Level.INIT if before.initialised else Level.QUERY if before.driver is not None else Level.NONE
        if level > known:
            framework = next(iter(sorted(after.asked_by)), "torch")
            self._add((named,), (("does", "gpu"), ("gpu", _LEVELS[level]), ("framework", framework)))

    def _imported(self, module: str) -> Process:
        """The process after an import; where that may go several ways, the one in which least happened."""
        states = self._older.imported(module)
        least = (s.process for s in states)
        return min(least, key=lambda p: (bool(p.initialised), p.driver is not None), default=Process())

    # -- functions -------------------------------------------------------------------------------

    def _function(self, subject: Subject, name: str) -> bool:
        """Say what a function does; whether there was something to say."""
        plain = subject.run({})
        if plain is None:
            return False
        loose = self._loosely(subject, plain)
        if plain.cut:
            self.unknown.append(f"{name}: more than is followed")
            return False
        if loose is not None and loose.cut:
            self.unknown.append(f"{name}: with other arguments more than is followed")
            loose = None
        if (launches(plain) or launches(loose)) and self._launcher(subject, name, plain, loose):
            return True
        settings = self._of_process(subject, plain) or self._of_gpu(subject, name, plain, loose)
        if settings is None:
            return False
        self._add((name,), settings)
        return True

    def _loosely(self, subject: Subject, plain: Trial) -> Trial | None:
        """The call with nothing left to defaults, where these could be what keeps it from workers or from the GPU."""
        if shown(plain).most is Level.NONE and not launches(plain) and not any(map(_COUNTS.search, subject.defaults)):
            return None
        return subject.run({p: unknown("derived", p) for p in subject.defaults})

    def _launcher(self, subject: Subject, name: str, plain: Trial, loose: Trial | None) -> bool:
        """Say what runs in the workers that a function starts; whether that is all there is to say of it."""
        found = launcher(subject)
        if found is None:
            started = launches(plain) or launches(loose)
            ways = sorted({f"{launched.library} by {launched.method}" for launched in started})
            self.unknown.append(f"{name}: starts processes ({', '.join(ways)}); nothing in them was seen to use CUDA")
            return False
        if found.is_earlier:
            self.unknown.append(f"{name}: hands work to processes that were forked before")
            return False
        settings = found.settings
        if found.runs:
            self._add((found.runs,), (("does", "gpu"), ("gpu", "init"), _LEAVES))
        if shown(plain).most > Level.NONE:
            self.unknown.append(f"{name}: may use CUDA beside its workers")
        self._add((name,), (*settings, _LEAVES))
        return True

    def _of_process(self, subject: Subject, plain: Trial) -> tuple[tuple[str, Setting], ...] | None:
        """What a function sets for the whole process."""
        # What the import of its module set is said of that.
        methods = start_methods(plain, self._imported(subject.module))
        if len(methods) == 1:
            library, method = next(iter(methods.items()))
            return ("does", "method.set"), ("library", library), ("method", method), _LEAVES
        if selects_rank(plain):
            group: tuple[tuple[str, Setting], ...] = (("kind", "group"),) if joins_group(plain) else ()
            return ("does", "group.select"), *group, ("gpu", _LEVELS.get(shown(plain).least, "none")), _LEAVES
        return None

    def _of_gpu(
        self, subject: Subject, name: str, plain: Trial, loose: Trial | None
    ) -> tuple[tuple[str, Setting], ...] | None:
        """What a function does to the GPU."""
        chosen = choice(subject, plain)
        if chosen is None and max(shown(plain).most, shown(loose).most) is Level.NONE:
            given = simple(plain)
            is_device = given == "device" or given.startswith("str:cuda")
            return (("does", "nothing"), ("returns", given), _LEAVES) if is_device else None
        if chosen is None:
            self.unknown.append(f"{name}: may use CUDA; its arguments do not show when")
            return None
        if chosen.beside > Level.NONE:
            self.unknown.append(f"{name}: asks the driver on the CPU too")
        return (*self._given(subject, chosen), _LEAVES)

    def _given(self, subject: Subject, chosen: Choice) -> tuple[tuple[str, Setting], ...]:
        """What a function gives that uses the GPU, and when it does."""
        params: tuple[tuple[str, Setting], ...] = (("params", subject.positions),) if subject.positions else ()
        when = (*chosen.settings, *(params if chosen.settings else ()))
        framework: tuple[tuple[str, Setting], ...] = (("framework", chosen.shown.framework),)
        initialises = chosen.shown.least is Level.INIT
        arrays = tensors(chosen.trial)
        if arrays and initialises and not chosen.conditional:
            default: tuple[tuple[str, Setting], ...] = () if when else (("default-gpu", True),)
            return ("does", "tensor"), ("framework", arrays[0].framework), *when, *default
        kind = made(chosen.trial)
        typed = self._type_name(None if kind is None else kind[0])
        if kind is not None and kind[1] and typed and initialises:
            default = () if when else (("default-gpu", True),)
            return ("does", "placed"), ("type", typed), *framework, *when, *chosen.idle, *default
        level: tuple[tuple[str, Setting], ...] = (("gpu", _LEVELS[chosen.shown.least]),)
        context: tuple[tuple[str, Setting], ...] = (("context", True),) if chosen.shown.opens_context else ()
        returns = f"thing:{typed}" if typed else simple(chosen.trial)
        gives: tuple[tuple[str, Setting], ...] = (("returns", returns),) if returns else ()
        return ("does", "gpu"), *level, *framework, *context, *when, *chosen.idle, *gives

    def _type_name(self, kind: Class | str | None) -> str:
        """What a class of the package is called in the model; a library's type as it is."""
        if not isinstance(kind, Class):
            return kind or ""
        place = f"{kind.module}.{kind.qualname}"
        return self._called.get(place) or self.surface.imported_as(kind.module, kind.qualname)

    # -- classes ---------------------------------------------------------------------------------

    def _class(self, definition: Definition, node: ir.ClassDef, name: str) -> None:
        """Say what making an instance does, and what its methods do."""
        methods = self._methods(definition)
        if methods is None:
            return
        base, found, properties = methods
        subject = self._subject(definition, found.get("__init__"))
        is_module = base is not None and self.library.is_a(base, _MODULE)
        plain = subject.run({})
        if base is not None and not is_module and self._is_launcher(base):
            self._derived_launcher(name, base, node)
            return
        said = self._function(subject, name)
        holds = plain is not None and (kind := made(plain)) is not None and kind[1]
        if is_module and base is not None:
            # It has the methods of its base, which say what they do to what it holds.
            self.types.append(TypeEntry(name, (base,)))
            if not said:
                self._add((name,), (("does", "module"), ("type", name), _LEAVES))
            return
        offered = {m: f for m, f in found.items() if _is_offered(m)}
        if offered and (plain is None or plain.cut):
            offered = {}
            self.unknown.append(f"{name}: what its methods do, as making it is not followed to its end")
        tried = self._each_tried(definition, name, offered, properties, subject, holds)
        spoken = {m: settings for m, settings in tried.items() if settings is not None}
        remembered = [settings for settings in spoken.values() if settings[0] == ("does", "estimator.fit")]
        asks = dict(self.entries[-1].settings) if said else {}
        if remembered and (not said or asks["does"] == "gpu"):
            kept = tuple(s for s in remembered[0] if s[0] in _CHOOSING)
            # What making it does to the driver is said along with what it remembers.
            made_by = tuple((key, asks[key]) for key in ("gpu", "framework") if key in asks)
            self.entries = self.entries[:-1] if said else self.entries
            self._add((name,), (("does", "estimator"), ("type", name), *made_by, *kept, _LEAVES))
            spoken = {m: tuple(s for s in settings if s[0] not in _CHOOSING) for m, settings in spoken.items()}
        elif remembered and asks["does"] == "placed":
            # It lies where making it put it, and its methods compute there.
            like = (("does", "like"), ("returns", "unknown"), _LEAVES)
            spoken = {m: like if settings in remembered else settings for m, settings in spoken.items()}
        elif spoken and not said:
            self._add((name,), (("does", "nothing"), ("returns", f"thing:{name}"), _LEAVES))
        for method, settings in spoken.items():
            self._add((f"{name}.{method}",), settings)
        undecided = [m for m in tried if f"{name}.{m}" in self._undecided]
        silent = [f"{name}.{m}" for m in tried if m not in spoken and m not in undecided]
        if holds and silent:
            # What no model names of an object on the GPU is taken to read it.
            self._add(tuple(silent), (("does", "nothing"), _LEAVES))

    def _methods(self, definition: Definition) -> tuple[str | None, dict[str, ir.Function], set[str]] | None:
        """The library's class that a class derives from, its methods with those of its bases, which are properties."""
        begun = self._older.imported(definition.module)
        if not begun:
            return None
        machine, state, cls = self._older.look(definition.module, definition.name)
        ref = only(cls)
        if not isinstance(ref, Ref) or not isinstance(state.get(ref), Class):
            return None
        found: dict[str, ir.Function] = {}
        properties: set[str] = set()
        for closure_name, function, is_property in self._older.methods(machine, state, ref):
            if is_property and closure_name not in found:
                properties.add(closure_name)
            found.setdefault(closure_name, function)
        return machine.library_base(ref, state), found, properties

    def _is_launcher(self, base: str) -> bool:
        spec = self.library.function(base)
        return spec is not None and spec["does"] in _STARTING

    def _derived_launcher(self, name: str, base: str, node: ir.ClassDef) -> None:
        """A class that derives from a pool, a process, a loader: the same under another name, if it adds nothing."""
        if any(isinstance(statement, ir.FunctionDef) for statement in node.body):
            self.unknown.append(f"{name}: derives from {base} and changes it")
        else:
            self.aliases[name] = base

    def _each_tried(
        self,
        definition: Definition,
        name: str,
        offered: Mapping[str, ir.Function],
        properties: Container[str],
        making: Subject,
        holds: bool,
    ) -> dict[str, tuple[tuple[str, Setting], ...] | None]:
        """What methods do; where the steps run out, those that are left are unknown."""
        tried: dict[str, tuple[tuple[str, Setting], ...] | None] = {}
        for method, function in offered.items():
            before, self.entries = self.entries, []
            try:
                subject = self._subject(definition, function, method, method in properties)
                called = f"{method}.__get__" if method in properties else method
                tried[called] = self._method(subject, f"{name}.{called}", making, holds)
            except OutOfSteps:
                self.entries = []
                left = [other for other in offered if not {other, f"{other}.__get__"} & tried.keys()]
                self.unknown.append(f"{name}: its methods {', '.join(left)}: more than is followed")
                return tried
            finally:
                self.entries = [*before, *self.entries]
        return tried

    def _method(
        self, subject: Subject, name: str, making: Subject, holds: bool
    ) -> tuple[tuple[str, Setting], ...] | None:
        """What a method does, by itself or to what its instance holds."""
        chosen = self._chosen_when_made(subject, making)
        if chosen is not None and holds:
            return ("does", "like"), ("returns", "unknown"), _LEAVES
        if chosen is not None:
            params: tuple[tuple[str, Setting], ...] = (("params", making.positions),) if making.positions else ()
            return ("does", "estimator.fit"), *chosen.settings, *params, _LEAVES
        said = self._function(subject, name)
        spoken, self.entries = self.entries, []
        uses = holds or shown(subject.run({})).most > Level.NONE
        forked = subject.run({}, Where.FORKED) if uses else None
        fails = fails_in_fork(forked)
        if fails and fails <= READS:
            return ("does", "like"), ("returns", "unknown"), _LEAVES
        if said:
            self.entries.extend(spoken[:-1])
            return spoken[-1].settings
        if fails and fails <= NEEDS_CUDA:
            return ("does", "gpu"), ("gpu", "touch"), _LEAVES
        plain = subject.run({})
        if holds and (may_fail(forked) or plain is None or not plain.ends):
            self._undecided.add(name)
            self.unknown.append(f"{name}: may use what its instance holds on the GPU")
        return None

    def _chosen_when_made(self, subject: Subject, making: Subject) -> Choice | None:
        """What decides whether a method uses the GPU, if that is an argument with which the instance is made."""
        plain = subject.run({})
        if making.function is None or plain is None or plain.cut:
            return None
        if shown(plain).most is Level.NONE and not suggestive(making):
            return None
        found = choice(replace(subject, makes=making.function), plain)
        return found if found is not None and found.settings else None

    def _add(self, names: tuple[str, ...], settings: tuple[tuple[str, Setting], ...]) -> None:
        self.entries.append(ModelEntry(names, settings))


def _is_offered(method: str) -> bool:
    return method in _SPECIAL or not method.startswith("_")


def _together(entries: Iterable[ModelEntry]) -> Iterator[ModelEntry]:
    """The entries with those in one that say the same; each name once."""
    by_settings: dict[str, ModelEntry] = {}
    seen: set[str] = set()
    for entry in entries:
        names = tuple(name for name in entry.names if name not in seen)
        seen.update(names)
        key = repr(entry.settings)
        if names and key in by_settings:
            by_settings[key] = replace(by_settings[key], names=(*by_settings[key].names, *names))
        elif names:
            by_settings[key] = replace(entry, names=names)
    yield from by_settings.values()
