"""The files of a run as modules: names, imports, lowering on demand, and what was read for it."""

from __future__ import annotations

import contextlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from cudalint.finding import Span
from cudalint.ir import nodes as ir
from cudalint.ir.looks import Looks
from cudalint.models.library import Library
from cudalint.models.releases import Admitted, of
from cudalint.project.command_lines import CommandLine
from cudalint.project.file_facts import ITSELF, FileFacts, KnownFacts, Shape
from cudalint.project.import_effects import ImportEffects
from cudalint.project.import_graph import ImportGraph
from cudalint.project.layout import Layout
from cudalint.project.main_guard import functions_defined, set_by_main
from cudalint.project.markers import Lexicon
from cudalint.project.reads import Broken, News, Reads
from cudalint.settings_files import SettingsFiles
from cudalint.store import Store
from cudalint.structs import replace
from cudalint.text.decode import searched
from cudalint.text.source import SourceFile

# The parser is imported when a file is lowered: a run that starts nothing does without.
if TYPE_CHECKING:
    from cudalint.ir.outline import Outline
    from cudalint.ir.stored import Form

MOST_BYTES = 2_000_000
MOST_ASSUMED_BYTES = 400_000
# What modules that are imported import leaves this part of the code to what an entry itself imports and calls.
LEFT_TO_CALLS = 4
# What sets variables of the environment, which tell processes their devices and where they meet.
_ENVIRONMENT = frozenset({"environ", "putenv", "unsetenv", "load_dotenv"})
MOST_EFFECTFUL_IMPORTS = 8
MOST_IMPORTED = 24
MOST_PLAIN_BYTES = 10_000
# What stands for ``%run module.py`` in the program of a notebook.
_RUN = re.compile(r"from ([\w.]+) import \*")


class FileProgram:
    """Modules by name. A file outside packages is named after itself; two of one name are kept apart by folder."""

    def __init__(
        self,
        library: Library,
        sources: dict[str, SourceFile] | None = None,
        names: dict[str, str] | None = None,
        layout: Layout | None = None,
        commands: frozenset[tuple[str, str]] = frozenset(),
        preloaded: frozenset[tuple[str, str, str]] = frozenset(),
        told: frozenset[tuple[str, CommandLine]] = frozenset(),
        broken: list[Broken] | None = None,
        store: Store | None = None,
    ) -> None:
        self.library = library
        self.sources: dict[str, SourceFile] = {} if sources is None else sources
        self.names: dict[str, str] = {} if names is None else names
        self.layout = Layout() if layout is None else layout
        self.commands = commands
        # The applications that servers make before they fork, as files of the repository say: module, name and server.
        self.preloaded = preloaded
        # Programs, each with words that it is started with, as such files say.
        self.told = told
        self.broken: list[Broken] = [] if broken is None else broken
        self.store = store
        self.parsed: dict[str, ir.Module | None] = {}
        self._forms: dict[str, Form] = {}
        # Where nodes of modules stand, of those that findings named so far; None where they stand nowhere.
        self.places: dict[str, dict[int, Span | None]] = {}
        self.files_parsed = 0
        self.bytes_parsed = 0
        self.nodes = 0
        self.budget = MOST_BYTES
        self._left_to_calls = 0
        self.notes: set[str] = set()
        # What was read since the last ``begin``; of imports only what nothing was noted of before is noted.
        self.reads = Reads()
        # How many notes the program makes only once, whichever entry gives reason first.
        self.noted_once = 0
        # The bodies of modules, and of classes by their ordinal, as the machine keeps them.
        self.gathered: dict[tuple[str, int | None], Any] = {}
        self._facts: dict[str, FileFacts] = {}
        # By module, the words by which functions of it show that they settle something.
        self._settling: dict[str, frozenset[str] | None] = {}
        # By module, the modules near it and whether something may start in one of these.
        self._launching: dict[str, tuple[frozenset[str], bool]] = {}
        self._looks = Looks()
        self._charged: set[str] = set()
        self._worth: dict[str, bool] = {}
        self._tops: dict[str, Mapping[str, bool]] = {}
        # How much of a module's facts another process was told.
        self._told: dict[str, int] = {}
        self._acting: dict[str, tuple[str, ...]] = {}
        self._importing_packages: dict[str, str | None] = {}
        # How many modules an import may lead to that is run in Python's order; of more, those that do something.
        self.most_imported = MOST_IMPORTED
        self._given_gpus: frozenset[str] | None = None
        # Whether some file has a word, where that was asked: entries of all modules ask for the same few.
        self._words: dict[str, bool] = {}
        # The classes of the program that start something, where that was asked.
        self.derived: frozenset[str] | None = None
        self.known = KnownFacts(Lexicon.of(self.library.vocabulary))
        self.settings_files = SettingsFiles(self.layout.top)
        self.graph = ImportGraph(self.library, self.sources, self.layout, self.facts, self._text_of_settings)
        self.effects = ImportEffects(self.library, self.sources, self.graph, self.facts)

    def _text_of_settings(self, path: str) -> str | None:
        return self.settings_files.text(path)

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
            result.graph.take(self.graph)
            result.derived, result._given_gpus = self.derived, self._given_gpus
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
        return self.graph.submodules(package)

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
            beside = (module, *self.graph.imports(module))
            homes = frozenset((*beside, *(below for home in beside for below in self.graph.imports(home))))
            self._launching[module] = homes, any(self.facts(home).may_launch for home in homes)
        asked, launches = self._launching[module]
        self.reads.asked.update(asked)
        return launches

    def settles(self, module: str, function: ir.Function) -> bool:
        """Whether a function of a module may start something or decide how it goes, itself or by what it names."""
        homes = (module, *self.graph.imports(module))
        self.reads.asked.update(homes)
        if module not in self._settling:
            self._settling[module] = self._settling_in(homes)
        words = self._settling[module]
        return words is None or function.mentions(words)

    def _settling_in(self, homes: Iterable[str]) -> frozenset[str] | None:
        """The words by which functions show that; None where no word tells, as models of the user's are named."""
        from cudalint.project.derived import launchers  # which looks for classes in programs

        facts = [self.facts(home) for home in homes]
        if any(one.mentions_own for one in facts):
            return None
        leading = (name.decode() for one in facts if one.may_launch for name in one.leading)
        selecting = (name.decode() for one in facts for name in one.selecting)
        selects = (word.decode() for word in self.library.vocabulary.selects.words())
        return launchers(self).union(leading, selecting, selects, _ENVIRONMENT)

    def facts(self, name: str) -> FileFacts:
        """What searching the bytes of a module's file shows."""
        found = self._facts.get(name)
        if found is None:
            found = self._facts[name] = self.known.of(self.sources[name].data)
        return found

    def begin(self, budget: int) -> None:
        """Start an entry, which may read this many bytes."""
        self.budget = budget
        self._left_to_calls = budget // LEFT_TO_CALLS
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
        for folder in homes if module is not None else dict.fromkeys((self.layout.top, *self._up(homes))):
            yield os.path.normpath(os.path.join(folder, *parts))

    def _up(self, folders: list[str]) -> Iterator[str]:
        """Folders, and those above them that lie in the project: ``python -m pkg.train`` is started above ``pkg``."""
        for folder in folders:
            yield folder
            while len(folder) > len(self.layout.top) and folder.startswith(self.layout.top):
                folder = os.path.dirname(folder)
                yield folder

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
        budget, left, reads, charged = self.budget, self._left_to_calls, self.reads, self._charged
        self.begin(MOST_BYTES)
        try:
            yield self.reads
        finally:
            self.budget, self._left_to_calls, self._charged = budget, left, charged
            self._read(reads)

    def rest_on(self, reads: Reads) -> None:
        """Have the entry that has begun rest on what was read aside."""
        self.notes |= reads.noted
        self.settings_files.ask(reads.settings)
        self.reads.add(reads)

    def charge(self, names: Iterable[str]) -> None:
        """Have read for the entry that has begun what its imports ran, as far as these may."""
        for name in sorted(names):
            self.module(name, within=True)

    def module(self, name: str, within: bool = False) -> ir.Module | None:
        """A lowered module; None where there is none, or none that can be parsed, or this entry has read too much.

        ``within``: an import that runs imports it, which leaves a part to what the entry itself calls.
        """
        self.reads.asked.add(name)
        if name in self.parsed and name in self._charged:
            return self.parsed[name]
        if self.layout.is_bare(name):
            return ir.Module(name, name, (), frozenset(), 1)
        source = self.sources.get(name)
        if source is None or not self._worth_lowering(name):
            return None
        weight = self.facts(name).weight
        if self.budget - (self._left_to_calls if within else 0) < weight:
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
        self.effects.judged.update(news.judged)

    def news(self) -> News:
        """What was found out since this was asked last."""
        facts = {n: f.known for n, f in self._facts.items() if len(f.known) > self._told.get(n, 0)}
        self._told.update((name, len(known)) for name, known in facts.items())
        return News(facts, dict(self.effects.judged))

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
            around = (name, *self.graph.reach(name))
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
        return self.graph.resolve(importer, name, level)

    def child(self, package: str, name: str) -> str | None:
        """The module ``name`` of a package of the project."""
        return self.graph.child(package, name)

    def below_library(self, importer: str, library: str, name: str) -> str | None:
        """The project's module that ``from library import name`` means, in a folder called as the library is."""
        return self.graph.below_library(importer, library, name)

    def is_library(self, module: str) -> bool:
        """Whether a module belongs to a library that is itself the project, as its metadata says."""
        return self.layout.is_installed_as(module.partition(".")[0])

    def admitted(self, package: str) -> Admitted:
        """The releases of a package that the project is used with, as far as its files name them."""
        return of(self.layout.admitted, package)

    def parents(self, name: str) -> tuple[str, ...]:
        """The packages whose files run before a module's, the outermost first."""
        return self.layout.parents(name)

    def importing_package(self, name: str) -> str | None:
        """The outermost package of a module that it imports, and that imports the module: None where it has none."""
        if name not in self._importing_packages:
            led_to = frozenset(self.graph.reached([name], at_once=True))
            packages = (one for one in self.parents(name) if one in led_to)
            reached = self.graph.reached
            found = next((one for one in packages if name in reached([one], at_once=True)), None)
            self._importing_packages[name] = found
        return self._importing_packages[name]

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
            self._tops[module] = set_by_main(lowered.body)
        if module == main or not self._tops[module] or not self._calls_into(lowered, main):
            return self._tops[module]
        return {}

    def _calls_into(self, lowered: ir.Module, main: str) -> bool:
        """Whether a module that the main one may import calls a function of another as it is imported."""
        others = (self.graph.importers.get(lowered.name, set()) & self.graph.reach(main)) - {main, lowered.name}
        self.reads.searched.update(others)
        defined = {name.encode() for name in functions_defined(lowered.body)}
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
        reached = self.graph.reached([name], at_once=True)
        effectful = [n for n in reached if self.effects.has_effects(n)]
        if not effectful:
            return []
        if len(reached) <= self.most_imported:
            return [name]
        if len(effectful) > MOST_EFFECTFUL_IMPORTS:
            self.noted_once += 1
            self.note(f"importing {name} runs more modules than are followed")
        return sorted(effectful)[:MOST_EFFECTFUL_IMPORTS]

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


def shape(text: str, made: Outline) -> Shape:
    """How a file is made of an outline and bodies."""
    from cudalint.ir.stored import form_key

    bodies = [made.rows_within(number) for number in range(len(made.pieces))]
    binding = tuple(number for number, body in enumerate(bodies) if ir.GLOBAL in body)
    return Shape(form_key(text), _digest(made.text), tuple(map(_digest, bodies)), binding)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


# Modules that run a program once they have prepared its process by their own ``install()``.
RUNS_PROGRAMS = "runs-programs"
