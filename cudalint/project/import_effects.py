"""What importing modules may do to GPUs and processes, told from their bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import accumulate

from cudalint.models.library import Library
from cudalint.project.file_facts import FileFacts
from cudalint.project.import_graph import ImportGraph
from cudalint.project.markers import Definitions, TopCalls, does_something, keeps_what_it_decorates
from cudalint.structs import Mutable, field
from cudalint.text.source import SourceFile


class ImportEffects(Mutable):
    """What the top levels of a program's modules may do."""

    library: Library
    sources: Mapping[str, SourceFile]
    graph: ImportGraph
    facts: Callable[[str], FileFacts]
    # Of modules that call something when they are imported, whether that does something: what no bytes of one file say.
    judged: dict[str, bool] = field(default_factory=dict)
    _gpu: dict[str, bool] = field(default_factory=dict)
    _tops_act: dict[str, bool] = field(default_factory=dict)
    _defined: dict[str, Definitions] = field(default_factory=dict)

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

    def has_effects(self, name: str) -> bool:
        """Whether importing a file, or a library that it imports, may do something."""
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

    def _do_something(self, name: str, calls: TopCalls) -> bool:
        if not calls.called.isdisjoint(self._on_gpu(name)) or self._launches(calls.called):
            return True
        homes = dict.fromkeys((name, *self.graph.imports(name)))
        registers = any(self._may_be_registered(home) for home in homes)
        if any(does_something(self._definitions(n), calls, self._on_gpu(n), registers=registers) for n in homes):
            return True
        # ``@MODELS.register()``, where one module makes ``MODELS`` of a class of another.
        further = (
            {beyond for home in homes for beyond in self.graph.imports(home)} if registers and calls.decorating else ()
        )
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
        return self._uses_gpu(name) or any(self._uses_gpu(n) for n in self.graph.reach(name))

    def _uses_gpu(self, name: str) -> bool:
        if name not in self._gpu:
            facts = self.facts(name)
            roots = {
                i.module.partition(".")[0] for i in facts.imports if not i.level and not (i.is_text and "." in i.module)
            }
            uses = not roots.isdisjoint(self.library.gpu_roots) or facts.places_on_gpu
            self._gpu[name] = uses or facts.mentions_own
        return self._gpu[name]
