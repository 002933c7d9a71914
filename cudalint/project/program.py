"""The files of a run as modules: names, imports, lowering on demand, and what was read for it."""

from __future__ import annotations

import contextlib
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from cudalint.finding import Span
from cudalint.ir import nodes as ir
from cudalint.ir.looks import Looks
from cudalint.ir.walk import inner_statements, names_bound_by
from cudalint.models.library import Library
from cudalint.models.releases import Admitted, of
from cudalint.project import command_lines, deployments, pytest_files, requirements, settings_named
from cudalint.project.command_lines import CommandLine
from cudalint.project.file_facts import ITSELF, FileFacts, KnownFacts, Shape
from cudalint.project.imports import ONE_OF_ALL
from cudalint.project.layout import Layout, layout
from cudalint.project.markers import Definitions, Lexicon, TopCalls, does_something, keeps_what_it_decorates
from cudalint.project.scripts import console_scripts, distributions
from cudalint.settings_files import SettingsFiles
from cudalint.store import Store
from cudalint.text.decode import searched
from cudalint.text.source import SourceFile

# The parser is imported when a file is lowered: a run that starts nothing does without.
if TYPE_CHECKING:
    from cudalint.ir.outline import Outline
    from cudalint.ir.stored import Form

MOST_BYTES = 2_000_000
MOST_ASSUMED_BYTES = 400_000
# What sets variables of the environment, which tell processes their devices and where they meet.
_ENVIRONMENT = frozenset({"environ", "putenv", "unsetenv", "load_dotenv"})
# So many bytes of a package are more than the few hundred steps of a test lead through.
LARGE_LIBRARY = 1_000_000
MOST_EFFECTFUL_IMPORTS = 8
MOST_IMPORTED = 24
MOST_REACHED = 400
# A text that ends in something unknown may name any module of a package that has so few.
MOST_WITHIN = 4
# How many modules a package imports at most that lists its folder.
MOST_BESIDE = 60
# A module, a class, a method: what a dotted text may name.
_MOST_NAMED_WITHIN = 3
MOST_PLAIN_BYTES = 10_000


@dataclass(frozen=True, slots=True)
class Broken:
    """A file that the parser refuses, and where; row and column are 0 where it is the whole."""

    source: SourceFile
    reason: str
    row: int
    column: int


@dataclass(slots=True)
class Reads:
    """What was read for something, which rests on it, and what there is to note.

    ``asked`` are the modules that were asked for, ``looked`` the bodies in them that were looked at. ``imported`` are
    those of which it was asked what importing them does, whatever names them. ``searched`` are files whose bytes say
    something that is no fact of theirs. ``sought`` are the files that hold a word, by the module whose importers were
    searched and the word. ``settings`` are files of settings by path, and what they held.
    """

    asked: set[str] = field(default_factory=set)
    looked: set[tuple[str, int]] = field(default_factory=set)
    imported: set[str] = field(default_factory=set)
    searched: set[str] = field(default_factory=set)
    sought: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    noted: set[str] = field(default_factory=set)

    def add(self, other: Reads) -> None:
        """Rest on what something else rests on."""
        self.asked |= other.asked
        self.looked |= other.looked
        self.imported |= other.imported
        self.searched |= other.searched
        self.sought.update(other.sought)
        self.settings.update(other.settings)
        self.noted |= other.noted


@dataclass(frozen=True, slots=True)
class News:
    """What was found out about files, as plain data: facts by module, and ``FileProgram.judged``."""

    facts: Mapping[str, dict[str, Any]]
    judged: Mapping[str, bool]


# What stands for ``%run module.py`` in the program of a notebook.
_RUN = re.compile(r"from ([\w.]+) import \*")


@dataclass(slots=True)
class FileProgram:
    """Modules by name. A file outside packages is named after itself; two of one name are kept apart by folder."""

    library: Library
    sources: dict[str, SourceFile] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    layout: Layout = field(default_factory=Layout)
    commands: frozenset[tuple[str, str]] = frozenset()
    # The applications that servers make before they fork, as files of the repository say: module, name and server.
    preloaded: frozenset[tuple[str, str, str]] = frozenset()
    # Programs, each with words that it is started with, as such files say.
    told: frozenset[tuple[str, CommandLine]] = frozenset()
    broken: list[Broken] = field(default_factory=list)
    store: Store | None = None
    parsed: dict[str, ir.Module | None] = field(default_factory=dict)
    _forms: dict[str, Form] = field(default_factory=dict)
    # Where nodes of modules stand, of those that findings named so far; None where they stand nowhere.
    places: dict[str, dict[int, Span | None]] = field(default_factory=dict)
    files_parsed: int = 0
    bytes_parsed: int = 0
    nodes: int = 0
    budget: int = MOST_BYTES
    notes: set[str] = field(default_factory=set)
    # What was read since the last ``begin``; of imports only what nothing was noted of before is noted.
    reads: Reads = field(default_factory=Reads)
    # How many notes the program makes only once, whichever entry gives reason first.
    noted_once: int = 0
    # The bodies of modules, and of classes by their ordinal, as the machine keeps them.
    gathered: dict[tuple[str, int | None], Any] = field(default_factory=dict)
    known: KnownFacts = field(init=False)
    _facts: dict[str, FileFacts] = field(default_factory=dict)
    settings_files: SettingsFiles = field(init=False)
    # By module, the words by which functions of it show that they settle something.
    _settling: dict[str, frozenset[str] | None] = field(default_factory=dict)
    # By module, the modules near it and whether something may start in one of these.
    _launching: dict[str, tuple[frozenset[str], bool]] = field(default_factory=dict)
    _looks: Looks = field(default_factory=Looks)
    _charged: set[str] = field(default_factory=set)
    _resolved: dict[tuple[str, str, int], str | None] = field(default_factory=dict)
    _children: dict[tuple[str, str], str | None] = field(default_factory=dict)
    _worth: dict[str, bool] = field(default_factory=dict)
    _gpu: dict[str, bool] = field(default_factory=dict)
    _tops: dict[str, Mapping[str, bool]] = field(default_factory=dict)
    _reach: dict[str, frozenset[str]] = field(default_factory=dict)
    _tops_act: dict[str, bool] = field(default_factory=dict)
    _defined: dict[str, Definitions] = field(default_factory=dict)
    # Of modules that call something when they are imported, whether that does something: what no bytes of one file say.
    judged: dict[str, bool] = field(default_factory=dict)
    # How much of a module's facts another process was told.
    _told: dict[str, int] = field(default_factory=dict)
    _imported: dict[str, tuple[_Import, ...]] = field(default_factory=dict)
    _importers: dict[str, set[str]] | None = None
    # The modules that lie directly in each package.
    _within: dict[str, tuple[str, ...]] | None = None
    _acting: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # How many modules an import may lead to that is run in Python's order; of more, those that do something.
    most_imported: int = MOST_IMPORTED
    _scripts: dict[str, bool] = field(default_factory=dict)
    _given_gpus: frozenset[str] | None = None
    # Whether some file may import what something else names.
    _by_name: bool | None = None
    # Whether some file has a word, where that was asked: entries of all modules ask for the same few.
    _words: dict[str, bool] = field(default_factory=dict)
    # The classes of the program that start something, where that was asked.
    derived: frozenset[str] | None = None

    def __post_init__(self) -> None:
        self.known = KnownFacts(Lexicon.of(self.library.vocabulary))
        self.settings_files = SettingsFiles(self.layout.top)

    def changed(self, texts: Mapping[str, str]) -> FileProgram:
        """The same program with other texts for some files, by path; the other modules are not lowered again."""
        sources = dict(self.sources)
        result = FileProgram(self.library, sources, dict(self.names), self.layout, self.commands, self.preloaded)
        result.told = self.told
        result.store = self.store
        result.known = self.known
        result._looks = self._looks
        result.settings_files = self.settings_files
        result._facts = {n: f for n, f in self._facts.items() if self.sources[n].path not in texts}
        result.parsed = dict(self.parsed)
        result._forms = dict(self._forms)
        result.places = {n: dict(known) for n, known in self.places.items() if self.sources[n].path not in texts}
        for path, text in texts.items():
            name = self.names[path]
            data = searched(text.encode("utf-8", "surrogatepass"))
            result.sources[name] = replace(self.sources[name], text=text, data=data)
            result.parsed.pop(name, None)
            result._forms.pop(name, None)
        if not any(self._starts_otherwise(result, self.names[path]) for path in texts):
            result._imported, result._importers, result.derived = dict(self._imported), self._importers, self.derived
            result._given_gpus = self._given_gpus
        return result

    def _starts_otherwise(self, other: FileProgram, name: str) -> bool:
        """Whether a file imports other modules there, or may be a program there and not here, or may start others."""
        facts, there = self.facts(name), other.facts(name)
        same = facts.imports == there.imports and facts.guards_main == there.guards_main
        same = same and facts.programs_with_gpus == there.programs_with_gpus
        return not same or facts.classes != there.classes or facts.may_launch != there.may_launch

    def modules_called(self, name: str) -> tuple[str, ...]:
        """The modules of packages that have this name within them."""
        return tuple(sorted(one for one in self.sources if one.endswith(f".{name}")))

    def submodules(self, package: str) -> tuple[str, ...]:
        """The modules that lie directly in a package of the project, or in a folder without ``__init__.py``."""
        if self._within is None:
            homes: dict[str, list[str]] = defaultdict(list)
            for one in sorted(self.sources):
                home = one.rpartition(".")[0]
                homes[home or os.path.join(os.path.dirname(self.layout.paths.get(one, "")), "")].append(one)
            self._within = {home: tuple(names) for home, names in homes.items()}
        return self._within.get(package, ())

    def modules_below(self, package: str) -> tuple[str, ...]:
        """The modules that lie directly in a package which is called so, wherever it is."""
        return tuple(sorted(one for one in self.sources if one.rpartition(".")[0].endswith(f".{package}")))

    def functions_of(self, name: str) -> tuple[str, ...]:
        """The functions that the top of a module defines, without those whose names begin with an underscore."""
        module = self.module(name)
        body = module.body if module is not None else ()
        found = (one.function.name for one in body if isinstance(one, ir.FunctionDef))
        return tuple(one for one in found if not one.startswith("_"))

    def applications(self, beside: str) -> tuple[tuple[str, str], ...]:
        """The modules beside a file, and below, that make a web application when they are imported, and its name."""
        folder = self.sources[beside].path.rpartition("/")[0]
        below = sorted(name for name in self.sources if self._lies_below(name, folder))
        self.reads.asked.update(below)
        return tuple((name, found) for name in below if (found := self.facts(name).application))

    def _lies_below(self, name: str, folder: str) -> bool:
        return self.sources[name].path.startswith(f"{folder}/")

    def may_launch(self, module: str) -> bool:
        """Whether something that a rule judges may start in the code of a module, or of one that it imports.

        A window's callback hands what was chosen to a module that starts the work.
        """
        if module not in self._launching:
            beside = (module, *self.imports(module))
            homes = frozenset((*beside, *(below for home in beside for below in self.imports(home))))
            self._launching[module] = homes, any(self.facts(home).may_launch for home in homes)
        asked, launches = self._launching[module]
        self.reads.asked.update(asked)
        return launches

    def settles(self, module: str, function: ir.Function) -> bool:
        """Whether a function of a module may start something or decide how it goes, itself or by what it names."""
        homes = (module, *self.imports(module))
        self.reads.asked.update(homes)
        if module not in self._settling:
            self._settling[module] = self._settling_in(homes)
        words = self._settling[module]
        return words is None or function.mentions(words)

    def _settling_in(self, homes: Iterable[str]) -> frozenset[str] | None:
        """The words by which functions show that; None where no word tells, as files select devices for themselves."""
        from cudalint.project.derived import launchers  # which looks for classes in programs

        facts = [self.facts(home) for home in homes]
        if any(one.selects_device or one.mentions_own for one in facts):
            return None
        leading = (name.decode() for one in facts if one.may_launch for name in one.leading)
        return launchers(self).union(leading, _ENVIRONMENT)

    def facts(self, name: str) -> FileFacts:
        """What searching the bytes of a module's file shows."""
        found = self._facts.get(name)
        if found is None:
            found = self._facts[name] = self.known.of(self.sources[name].data)
        return found

    def begin(self, budget: int) -> None:
        """Start an entry, which may read this many bytes."""
        self.budget = budget
        self._read(Reads())
        self._charged = set()

    def _read(self, reads: Reads) -> None:
        self.reads = reads
        self._looks.places = reads.looked

    def module_at(self, module: str | None, main: str, parts: tuple[str, ...]) -> str | None:
        """The module of the file that lies there; of places where a program may start, of the first that has one."""
        found = (self.names.get(path) for path in self._places(module, main, parts))
        return next((name for name in found if name is not None), None)

    def _places(self, module: str | None, main: str, parts: tuple[str, ...]) -> Iterator[str]:
        """Where a path leads: from the folder of a module's file, or from one in which a program may be started."""
        homes = [os.path.dirname(self.sources[name].path) for name in (module or main,) if name in self.sources]
        for folder in homes if module is not None else dict.fromkeys((self.layout.top, *homes)):
            yield os.path.normpath(os.path.join(folder, *parts))

    def settings(self, module: str | None, main: str, parts: tuple[str, ...]) -> str | None:
        """The text of a file of settings; None where there is none, or where it depends on where a program starts."""
        found: dict[str, None] = {}
        for path in self._places(module, main, parts):
            text = self.settings_files.text(path)
            self.reads.settings[path] = self.settings_files.digest(path)
            if text is not None:
                found[text] = None
        return next(iter(found)) if len(found) == 1 else None

    def note(self, *texts: str) -> None:
        """Note what was not looked at."""
        self.notes.update(texts)
        self.reads.noted.update(texts)

    @contextlib.contextmanager
    def aside(self) -> Iterator[Reads]:
        """Read for several entries, beside the one that has begun."""
        budget, reads, charged = self.budget, self.reads, self._charged
        self.begin(MOST_BYTES)
        try:
            yield self.reads
        finally:
            self.budget, self._charged = budget, charged
            self._read(reads)

    def rest_on(self, reads: Reads) -> None:
        """Have the entry that has begun rest on what was read aside."""
        self.notes |= reads.noted
        self.settings_files.ask(reads.settings)
        self.reads.add(reads)

    def charge(self, names: Iterable[str]) -> None:
        """Have read some modules for the entry that has begun, as far as it may."""
        for name in sorted(names):
            self.module(name)

    def module(self, name: str) -> ir.Module | None:
        """A lowered module; None where there is none, or none that can be parsed, or this entry has read too much."""
        self.reads.asked.add(name)
        if name in self.parsed and name in self._charged:
            return self.parsed[name]
        if self.layout.is_bare(name):
            return ir.Module(name, name, (), frozenset(), 1)
        source = self.sources.get(name)
        if source is None or not self._worth_lowering(name):
            return None
        weight = self.facts(name).weight
        if self.budget < weight:
            self.note(self._unread(source.path, weight))
            return None
        self._charged.add(name)
        self.budget -= weight
        if name not in self.parsed:
            self.parsed[name] = self._lower(name, source)
        return self.parsed[name]

    def _unread(self, path: str, weight: int) -> str:
        """What is said of a module that an entry has no room for: of one that none has room for, which it is."""
        if weight > MOST_BYTES:
            return f"{path}: cut off: more than {MOST_BYTES} bytes of code"
        return "an entry reaches more code than is read for it; the rest is taken as unknown"

    @property
    def effort(self) -> tuple[int, int, int]:
        """The files and bytes that were parsed, and the nodes that were lowered."""
        return self.files_parsed, self.bytes_parsed, self.nodes

    def add_effort(self, effort: tuple[int, int, int]) -> None:
        """Count what another process did."""
        files, size, nodes = effort
        self.files_parsed += files
        self.bytes_parsed += size
        self.nodes += nodes

    def learn(self, news: News) -> None:
        """Take over what another process found out about the same files."""
        for name, known in news.facts.items():
            self.facts(name).learn(known)
        self.judged.update(news.judged)

    def news(self) -> News:
        """What was found out since this was asked last."""
        facts = {n: f.known for n, f in self._facts.items() if len(f.known) > self._told.get(n, 0)}
        self._told.update((name, len(known)) for name, known in facts.items())
        return News(facts, dict(self.judged))

    def take_broken(self, name: str, broken: Broken, *, is_whole: bool) -> None:
        """Have a file that another process could not parse, or only a body in it."""
        if is_whole:
            self.parsed[name] = None
        if all(known.source is not broken.source for known in self.broken):
            self.broken.append(broken)

    def is_broken(self, name: str) -> bool:
        """Whether a module was found to be one that cannot be parsed."""
        return name in self.sources and name in self.parsed and self.parsed[name] is None

    def _worth_lowering(self, name: str) -> bool:
        """Whether a module can matter: by what it says, by what it leads to, or as a few constants."""
        if self.facts(name).weight <= MOST_PLAIN_BYTES:
            return True
        if name not in self._worth:
            around = (name, *self.reach(name))
            self._worth[name] = any(self.facts(n).may_matter for n in around)
        return self._worth[name]

    def _lower(self, name: str, source: SourceFile) -> ir.Module | None:
        from cudalint.ir.stored import Unparsable, lowered

        try:
            form = lowered(source.text, source.path, name, self.store)
        except RecursionError:
            self._count(source)
            self.too_deep(source)
            return None
        self._forms[name] = form
        if form.is_fresh:
            self._count(source)
        if isinstance(form.module, Unparsable):
            self.broken.append(Broken(source, form.module.reason, form.module.row, form.module.column))
            return None
        if form.is_fresh:
            self.nodes += form.module.size
        if form.bodies is not None:
            form.bodies.lowered = self._count_nodes
            form.bodies.refused = partial(self._refused, source)
            form.bodies.looks = self._looks
            if self.store is not None and self.facts(name).shape is None:
                self.facts(name).take_shape(shape(source.text, form.bodies.outline))
        return form.module

    def form(self, name: str) -> Form:
        """The form that a module was lowered to."""
        return self._forms[name]

    def too_deep(self, source: SourceFile) -> None:
        """The code of a file is nested more deeply than the running Python follows."""
        if not any(known.source is source for known in self.broken):
            self.broken.append(Broken(source, "the code is nested too deeply", 0, 0))

    def _count(self, source: SourceFile) -> None:
        self.files_parsed += 1
        self.bytes_parsed += len(source.data)

    def _count_nodes(self, nodes: int) -> None:
        self.nodes += nodes

    def _refused(self, source: SourceFile, reason: str) -> None:
        """The body of a function cannot be parsed: the whole file says where."""
        if any(known.source is source for known in self.broken):
            return
        from cudalint.ir.stored import Unparsable, whole

        try:
            found = whole(source.text, source.path, "")
        except RecursionError:
            found = Unparsable(reason, 0, 0)
        if isinstance(found, Unparsable):
            self.broken.append(Broken(source, found.reason, found.row, found.column))

    def keep(self) -> None:
        """Keep what this run found out about files for the next one."""
        self.known.keep()
        self.keep_forms()

    def keep_forms(self) -> None:
        """Keep how files were lowered."""
        if self.store is None or not self._forms:
            return
        from cudalint.ir.stored import keep

        for name, form in self._forms.items():
            keep(form, self.sources[name].text, self.store)

    def resolve(self, importer: str, name: str, level: int) -> str | None:
        """The project's module that an import in ``importer`` means."""
        key = (importer, name, level)
        if key not in self._resolved:
            self._resolved[key] = self._resolve(importer, name, level)
        return self._resolved[key]

    def _resolve(self, importer: str, name: str, level: int) -> str | None:
        if level:
            return self.layout.relative(importer, name, level)
        first = name.partition(".")[0]
        if self.library.owns(first):
            return None
        is_library = self.library.knows(first)
        return self.layout.absolute(importer, name, holds_script=self._holds_script, is_library=is_library)

    def is_library(self, module: str) -> bool:
        """Whether a module belongs to a library that is itself the project, as its metadata says."""
        return self.layout.is_installed_as(module.partition(".")[0])

    def admitted(self, package: str) -> Admitted:
        """The releases of a package that the project is used with, as far as its files name them."""
        return of(self.layout.admitted, package)

    def below_library(self, importer: str, library: str, name: str) -> str | None:
        """The project's module that ``from library import name`` means, in a folder called as the library is."""
        path = f"{library}.{name}"
        return None if self.library.function(path) is not None else self.resolve(importer, path, 0)

    def _holds_script(self, folder: str) -> bool:
        """Whether a file of a folder says what it does as a program."""
        if folder not in self._scripts:
            inside = (n for path, n in self.layout.names.items() if os.path.dirname(path) == folder)
            self._scripts[folder] = any(b"__main__" in self.sources[n].data for n in inside if n in self.sources)
        return self._scripts[folder]

    def child(self, package: str, name: str) -> str | None:
        """The module ``name`` of a package of the project."""
        key = (package, name)
        if key not in self._children:
            self._children[key] = self.layout.child(package, name)
        return self._children[key]

    def parents(self, name: str) -> tuple[str, ...]:
        """The packages whose files run before a module's, the outermost first."""
        return self.layout.parents(name)

    def package(self, name: str) -> str | None:
        """The package that a module lies in, or is."""
        return self.layout.package(name)

    def set_by_main(self, module: str, main: str) -> Mapping[str, bool]:
        """Names that are set under a module's main guard or by its functions, and whether its import binds them, too.

        What other statements of its top level bind, a fresh process binds under the same conditions. Nor does it lack
        what functions of the module set where the import of another module, which main may import, calls them.
        """
        lowered = self.module(module)
        if lowered is None:
            return {}
        if module not in self._tops:
            self._tops[module] = _set_by_main(lowered.body)
        if module == main or not self._tops[module] or not self._calls_into(lowered, main):
            return self._tops[module]
        return {}

    def _calls_into(self, lowered: ir.Module, main: str) -> bool:
        """Whether a module that the main one may import calls a function of another as it is imported."""
        others = (self.importers.get(lowered.name, set()) & self.reach(main)) - {main, lowered.name}
        self.reads.searched.update(others)
        defined = {name.encode() for name in _functions_of(lowered.body)}
        return any(not defined.isdisjoint(self.facts(other).calls_at_top.called) for other in others)

    def effectful_imports(self, name: str) -> tuple[str, ...]:
        """What has to run when ``name`` is imported, because a top level that it reaches may do something.

        These are the packages and the module itself: they import what they need, in their order and under their
        conditions. Where they lead through too many modules, only those that do something are run.
        """
        self.reads.imported.add(name)
        if name not in self._acting:
            found = [n for start in (*self.parents(name), name) for n in self._acting_from(start)]
            self._acting[name] = tuple(dict.fromkeys(found))
        return self._acting[name]

    def _acting_from(self, name: str) -> list[str]:
        reached = self._reached([name], at_once=True)
        effectful = [n for n in reached if self._has_import_effects(n)]
        if not effectful:
            return []
        if len(reached) <= self.most_imported:
            return [name]
        if len(effectful) > MOST_EFFECTFUL_IMPORTS:
            self.noted_once += 1
            self.note(f"importing {name} runs more modules than are followed")
        return sorted(effectful)[:MOST_EFFECTFUL_IMPORTS]

    def _has_import_effects(self, name: str) -> bool:
        if name not in self._tops_act:
            brings = self.facts(name).mentions_own or self._has_effectful_imports(name)
            self._tops_act[name] = brings or self.acts(name)
        return self._tops_act[name]

    def _has_effectful_imports(self, name: str) -> bool:
        """Whether a file imports a package whose import uses a GPU, or something below one."""
        effectful = self.library.effectful_imports
        return any(
            not effectful.isdisjoint(accumulate(module.split("."), "{}.{}".format))
            for i in self.facts(name).imports
            if not i.level and not i.is_text
            for module in (i.module, *(f"{i.module}.{found}" for found in i.names))
        )

    def acts(self, name: str) -> bool:
        """Whether the top level of a file, by itself, may use a GPU, start something or change the process."""
        return self.facts(name).acts_at_top or self.acts_by_calls(name)

    def acts_by_calls(self, name: str) -> bool:
        """Whether the top level calls what may use a GPU or starts something, or hands a function to a registry."""
        if name not in self.judged:
            calls = self.facts(name).calls_at_top
            if not (calls.called or calls.decorating or calls.deriving):
                return False
            self.judged[name] = self._do_something(name, calls)
        return self.judged[name]

    def _do_something(self, name: str, calls: TopCalls) -> bool:
        if not calls.called.isdisjoint(self._on_gpu(name)) or self._launches(calls.called):
            return True
        homes = dict.fromkeys((name, *self.imports(name)))
        registers = any(self._may_be_registered(home) for home in homes)
        if any(does_something(self._definitions(n), calls, self._on_gpu(n), registers=registers) for n in homes):
            return True
        # ``@MODELS.register()``, where one module makes ``MODELS`` of a class of another.
        further = {beyond for home in homes for beyond in self.imports(home)} if registers and calls.decorating else ()
        return any(keeps_what_it_decorates(self._definitions(n), calls) for n in further if n not in homes)

    def _may_be_registered(self, name: str) -> bool:
        """Whether it matters what a registry holds of a file: code that may use a GPU, or start what does."""
        facts = self.facts(name)
        return facts.mentions_gpu or facts.may_launch

    def _definitions(self, name: str) -> Definitions:
        if name not in self._defined:
            self._defined[name] = Definitions.of(self.sources[name].data, self.library.vocabulary)
        return self._defined[name]

    def _launches(self, called: frozenset[bytes]) -> bool:
        return any(name.decode() in self.library.vocabulary.launchers for name in called)

    def _on_gpu(self, name: str) -> frozenset[bytes]:
        """The functions that use a GPU of the packages that a file imports, by the last parts of their names."""
        roots = {i.module.partition(".")[0] for i in self.facts(name).imports if not i.level and not i.is_text}
        known = self.library.gpu_functions
        return frozenset(name for root in roots & known.keys() for name in known[root])

    def reaches_gpu(self, name: str) -> bool:
        """Whether a file, or what it imports of the project, imports what may use a GPU, or puts something there."""
        return self._uses_gpu(name) or any(self._uses_gpu(n) for n in self.reach(name))

    def _uses_gpu(self, name: str) -> bool:
        if name not in self._gpu:
            facts = self.facts(name)
            roots = {
                i.module.partition(".")[0] for i in facts.imports if not i.level and not (i.is_text and "." in i.module)
            }
            uses = not roots.isdisjoint(self.library.gpu_roots) or facts.places_on_gpu
            self._gpu[name] = uses or facts.mentions_own
        return self._gpu[name]

    def reach(self, name: str) -> frozenset[str]:
        """The modules that running a file may import, by its bytes."""
        if name not in self._reach:
            reached = self._reached([name], at_once=False)
            if any(self.facts(one).imports_what_it_is_told for one in reached):
                reached = self._reached([*self._handed(name), *reached], at_once=False)
            self._reach[name] = frozenset(reached)
        return self._reach[name]

    def _handed(self, name: str) -> Iterator[str]:
        """The modules of the packages that a file names: what it hands these to may import all that they have."""
        facts = self.facts(name)
        whole = [found for found in facts.imports if not found.is_text]
        homes = [self.resolve(name, found.module, found.level) for found in whole if not found.names]
        homes.extend(self.resolve(name, word, 0) for word in facts.quoted if word.isidentifier())
        for found in whole:
            home = self.resolve(name, found.module, found.level) if found.names else None
            homes.extend(self.child(home, part) for part in found.names if home is not None)
        for home in dict.fromkeys(homes):
            if home is not None and home in self.sources and self.package(home) == home:
                yield from self.submodules(home)[:MOST_BESIDE]

    def _reached(self, names: Sequence[str], *, at_once: bool) -> list[str]:
        seen: dict[str, None] = {}
        stack = [*names]
        while stack and len(seen) < MOST_REACHED:
            current = stack.pop()
            if current in seen or current not in self.sources:
                continue
            seen[current] = None
            stack.extend(i.home for i in self._imports(current) if i.at_once or not at_once)
        return list(seen)

    def imports(self, name: str) -> tuple[str, ...]:
        """The modules of the project that a file imports somewhere."""
        return tuple(i.home for i in self._imports(name))

    @property
    def importers(self) -> Mapping[str, set[str]]:
        """Which modules import a module by a statement of theirs."""
        if self._importers is None:
            found: dict[str, set[str]] = defaultdict(set)
            for name in self.sources:
                for home in self.imports(name):
                    found[home].add(name)
            self._importers = dict(found)
        return self._importers

    @property
    def given_gpus(self) -> frozenset[str]:
        """The programs that another file, or they themselves, start and tell which GPUs they see."""
        if self._given_gpus is None:
            starters: dict[str, set[str]] = defaultdict(set)
            for name in self.sources:
                for program in self.facts(name).programs_with_gpus:
                    starters[program.decode("ascii")].add(name)
            stems = {name: os.path.basename(source.path).removesuffix(".py") for name, source in self.sources.items()}
            itself = starters.get(ITSELF.decode("ascii"), set())
            self._given_gpus = frozenset(
                n for n, stem in stems.items() if n in itself or starters.get(stem, set()) - {n}
            )
        return self._given_gpus

    def above(self, name: str) -> tuple[str, ...]:
        """All modules that import a module, however far."""
        found = _closure((name,), lambda n: self.importers.get(n, ()))
        return tuple(sorted(found - {name}))

    def below(self, names: Iterable[str]) -> set[str]:
        """Some modules and all that they import somewhere, however far."""
        return _closure(names, lambda n: self.imports(n) if n in self.sources else ())

    def guards_main(self, name: str) -> bool:
        """Whether a module says itself what it does as a program, or can be nothing else."""
        if self.facts(name).guards_main or self.is_notebook(name):
            return True
        return self._is_main_file(name)

    def is_notebook(self, name: str) -> bool:
        """Whether a module is a notebook: nothing imports it, and it runs in the main module of a kernel."""
        return name in self.sources and self.sources[name].path.endswith(".ipynb")

    def is_named(self, word: str) -> bool:
        """Whether some file of the project has this word."""
        self.reads.searched.update(self.sources)
        if word not in self._words:
            self._words[word] = any(word in source.text for source in self.sources.values())
        return self._words[word]

    def is_package_main(self, module: str) -> bool:
        """Whether a module is what ``python -m package`` runs, which no child of that process imports again."""
        return module in self.sources and self._is_main_file(module) and bool(self.parents(module))

    def _is_main_file(self, name: str) -> bool:
        return os.path.basename(self.sources[name].path) == "__main__.py"

    def is_run_in(self, notebook: str, module: str) -> bool:
        """Whether a magic of a notebook runs a module in the kernel, whose main module then holds what that defines."""
        source = self.sources.get(notebook)
        if source is None or source.cells is None:
            return False
        rows = enumerate(source.text.splitlines(), 1)
        named = (_RUN.match(row) for number, row in rows if number in source.cells.replaced)
        return any(found is not None and self.resolve(notebook, found[1], 0) == module for found in named)

    def runs_in_package(self, name: str) -> bool:
        """Whether a program is started as a part of its package, as ``python -m`` does: else nothing imports that."""
        return self._is_main_file(name) or self.facts(name).imports_relatively

    def lies_outside_packages(self, name: str) -> bool:
        """Whether a module is a file by itself, or a package at the top."""
        return "." not in name.rpartition(":")[2]

    def lies_below_package(self, name: str) -> bool:
        """Whether a module that no package holds lies in a folder of one all the same."""
        return self.layout.lies_below_package(name)

    def scripts(self, name: str) -> frozenset[str]:
        """The functions of a module that the project installs as commands."""
        return frozenset(function for home, function in self.commands if home == name)

    def command_lines(self, name: str) -> list[CommandLine]:
        """Words that files of the repository start a program with."""
        return sorted(line for home, line in self.told if home == name)

    def preloads(self, name: str) -> frozenset[tuple[str, str]]:
        """The applications of a module that servers make before they fork, as files say, and which server."""
        return frozenset((application, server) for home, application, server in self.preloaded if home == name)

    def _imports(self, name: str) -> tuple[_Import, ...]:
        if name not in self._imported:
            self._imported[name] = tuple(dict.fromkeys(self._read_imports(name)))
        return self._imported[name]

    def _home_of_text(self, name: str, text: str, level: int) -> str | None:
        """The module that a dotted text names, or that defines what it names: a function, or a method of a class."""
        for _ in range(_MOST_NAMED_WITHIN):
            home = self.resolve(name, text, level)
            if home is not None:
                return home
            text = text.rpartition(".")[0]
        return None

    def _read_imports(self, name: str) -> Iterable[_Import]:
        for found in self.facts(name).imports:
            named = self._home_of_text if found.is_text else self.resolve
            home = named(name, found.module, found.level)
            if home is None and not found.level and not found.is_text:
                below = (self.below_library(name, found.module, n) for n in found.names)
                yield from (_Import(h, found.at_once) for h in below if h in self.sources)
            if home is None or (found.is_text and home == name and ONE_OF_ALL not in found.names):
                continue
            homes = [*self.parents(home), home]
            homes.extend(child for n in found.names if (child := self.child(home, n)) is not None)
            if ONE_OF_ALL in found.names and len(within := self.submodules(home)) <= MOST_WITHIN:
                homes.extend(within)
            yield from (_Import(h, found.at_once) for h in homes if h in self.sources)
        if self._some_import_by_name:
            yield from self._read_settings(name)
        if self.package(name) == name:
            yield from self._read_beside(name)

    @property
    def _some_import_by_name(self) -> bool:
        if self._by_name is None:
            self._by_name = any(self.facts(name).imports_by_name for name in self.sources)
        return self._by_name

    def _read_settings(self, name: str) -> Iterable[_Import]:
        """The modules that files of settings name which a module reads: what these are handed to may import them."""
        own = os.path.dirname(self.sources[name].path)
        folders = dict.fromkeys((own, self.layout.top))
        places = [os.path.normpath(os.path.join(f, p)) for p in self.facts(name).settings_places for f in folders]
        texts = {place: self.settings_files.text(place) or "" for place in places}
        others = [other for place, text in texts.items() for other in settings_named.further(place, text)]
        for text in dict.fromkeys((*texts.values(), *(self.settings_files.text(other) or "" for other in others))):
            for dotted in settings_named.names(text):
                home = self._home_of_text(name, dotted, 0)
                homes = () if home is None or home == name else (*self.parents(home), home)
                yield from (_Import(h, at_once=False) for h in homes if h in self.sources)

    def _read_beside(self, package: str) -> Iterable[_Import]:
        """The modules in a package that it imports where it lists its folder, or that a star import of it imports."""
        within = self.submodules(package)[:MOST_BESIDE]
        if within and self.facts(package).may_import_all_beside:
            yield from (_Import(home, at_once=True) for home in within)
        named = self.facts(package).named_for_stars if within else frozenset()
        yield from (_Import(home, at_once=False) for home in within if home.rpartition(".")[2].encode() in named)


def shape(text: str, made: Outline) -> Shape:
    """How a file is made of an outline and bodies."""
    from cudalint.ir.stored import form_key

    bodies = [made.rows_within(number) for number in range(len(made.pieces))]
    binding = tuple(number for number, body in enumerate(bodies) if ir.GLOBAL in body)
    return Shape(form_key(text), _digest(made.text), tuple(map(_digest, bodies)), binding)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


@dataclass(frozen=True, slots=True)
class _Import:
    """A module of the project that a file imports."""

    home: str
    at_once: bool


def program(
    sources: Sequence[SourceFile],
    library: Library,
    root: str | None = None,
    store: Store | None = None,
    known: KnownFacts | None = None,
) -> FileProgram:
    """Name all files of a run; ``store`` is where their lowered forms are kept between runs.

    ``known`` are facts that were found out when the files were sorted.
    """
    by_path = {source.path: source for source in sources}
    placed = layout(by_path, root)
    named = {name: by_path[path] for path, name in placed.names.items()}
    result = FileProgram(library, named, placed.names, placed, store=store)
    result.known = known or KnownFacts(result.known.lexicon, store, root or placed.top)
    if root is not None:
        placed.distributions = distributions(root)
        placed.admitted = requirements.admitted(root)
        placed.large = frozenset(name for name in placed.tops if _is_large_library(result, name))
        result.commands = frozenset(_placed(result, console_scripts(root)))
        servers = deployments.servers(root)
        result.preloaded = frozenset(
            (home, name, server)
            for module, name, server in servers.preloaded
            for home, name in _placed(result, [(module, name)])
        )
        result.preloaded |= frozenset(_configured(result, servers))
        # celery finds its application in a module of that name, too.
        homes = [(f"{module}{below}", pool) for module, pool in servers.pools for below in ("", ".celery")]
        result.preloaded |= {(home, "", f"{deployments.WORKS}{pool}") for home, pool in _placed(result, homes)}
        result.told = frozenset(_told(result, root))
        collected = {n: os.path.dirname(s.path) for n, s in named.items() if pytest_files.is_test_module(s.path)}
        forked = {folder for folder in {*collected.values()} if pytest_files.forks(root, folder)}
        result.preloaded |= {(n, "", pytest_files.FORKS) for n, folder in collected.items() if folder in forked}
    return result


def _configured(files: FileProgram, servers: deployments.Servers) -> Iterable[tuple[str, str, str]]:
    """The configurations that servers are started with, and the application of each."""
    for path, module, name in servers.configured:
        served = [f"{home}:{name}" for home, _ in _placed(files, [(module, name)])]
        for conf in _files_called(files, path):
            yield from ((conf, application, deployments.CONFIGURES) for application in served)


# Modules that run a program once they have prepared its process by their own ``install()``.
RUNS_PROGRAMS = "runs-programs"


def _is_large_library(files: FileProgram, package: str) -> bool:
    """Whether the project is a library that models know, and has more code in a package than tests are led through."""
    if not files.library.knows(package) or not files.is_library(package):
        return False
    inside = (name for name in files.sources if name.partition(".")[0] == package)
    return sum(files.facts(name).weight for name in inside) > LARGE_LIBRARY


def _told(files: FileProgram, root: str) -> Iterable[tuple[str, CommandLine]]:
    """Programs and the words that files start them with: of each program a few, those of most words first."""
    lines: dict[str, set[CommandLine]] = {}
    for folder, target, line in command_lines.found(root):
        if line.through and not files.library.traits.has(line.through, RUNS_PROGRAMS):
            continue
        decides = line.sets_something or line.through
        if decides and (home := _program_called(files, folder, target, root)) is not None:
            lines.setdefault(home, set()).add(line)
    for home, told in lines.items():
        known = {(line.words, line.through): line for line in sorted(told, reverse=True)}
        chosen = sorted(known.values(), key=lambda line: (-len(line.words), line))
        yield from ((home, line) for line in chosen[: command_lines.MOST_LINES])


def _program_called(files: FileProgram, folder: str, target: str, root: str) -> str | None:
    """The module that a command names: seen from the file that has the command, from the top, or wherever it is."""
    if target.startswith("-m "):
        named = target.removeprefix("-m ")
        return files.layout.anywhere(f"{named}.__main__") or files.layout.anywhere(named)
    for start in (root, folder):
        home = files.names.get(os.path.normpath(os.path.join(start, target)))
        if home is not None:
            return home
    found = _files_called(files, target)
    return found[0] if len(found) == 1 else None


def _files_called(files: FileProgram, path: str) -> list[str]:
    """The modules that a path names, which is seen from a folder that is not known: by as much of it as is there."""
    parts = path.strip("./").split("/")
    for begin in range(len(parts)):
        end = f"/{'/'.join(parts[begin:])}"
        if found := [name for path, name in files.names.items() if f"/{path}".endswith(end)]:
            return found
    return []


def _placed(files: FileProgram, named: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    """The modules of the project, and the names in them, that files speak of."""
    for module, name in named:
        home = files.layout.anywhere(module)
        if home is not None:
            yield home, name


def _closure(names: Iterable[str], following: Callable[[str], Iterable[str]]) -> set[str]:
    """Some names and whatever they lead to."""
    seen: set[str] = set()
    stack = list(names)
    while stack:
        name = stack.pop()
        if name not in seen:
            seen.add(name)
            stack.extend(following(name))
    return seen


def _set_by_main(body: Iterable[ir.Stmt]) -> Mapping[str, bool]:
    always: set[str] = set()
    by_main: set[str] = set()
    stack: list[tuple[ir.Stmt, set[str]]] = [(s, always) for s in body]
    while stack:
        statement, names = stack.pop()
        names.update(names_bound_by(statement))
        if isinstance(statement, ir.If) and names is always and _asks_for_main(statement.test):
            stack.extend((s, by_main) for s in statement.body)
            stack.extend((s, always) for s in statement.orelse)
        else:
            stack.extend((s, names) for s in inner_statements(statement))
        if isinstance(statement, ir.FunctionDef):
            by_main.update(_globals_of(statement.function))
    return {name: name in always for name in by_main}


def _functions_of(body: Iterable[ir.Stmt]) -> Iterator[str]:
    """The names of the functions and methods that a top level defines."""
    for statement in body:
        match statement:
            case ir.FunctionDef(function=function):
                yield function.name
            case ir.ClassDef(body=inner):
                yield from _functions_of(inner)
            case _:
                yield from _functions_of(inner_statements(statement))


def _asks_for_main(test: ir.Expr) -> bool:
    match test:
        case ir.Compare(left=left, op="==", right=right):
            return any(isinstance(e, ir.Name) and e.id == "__name__" for e in (left, right))
        case ir.Bool(op="and", values=values):
            return any(_asks_for_main(value) for value in values)
    return False


def _globals_of(function: ir.Function) -> Iterable[str]:
    return _globals(function.body) if function.binds_globals else ()


def _globals(body: Iterable[ir.Stmt]) -> Iterable[str]:
    for statement in body:
        match statement:
            case ir.Scoping(kind="global", names=names):
                yield from names
            case ir.FunctionDef(function=function):
                yield from _globals_of(function)
            case _:
                yield from _globals(inner_statements(statement))
