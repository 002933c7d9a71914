"""The models of all libraries, looked up by canonical dotted name."""

from __future__ import annotations

import builtins
import os
import re
import sys
from collections.abc import Hashable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import TypeAlias

import tomli

from cudalint import disk
from cudalint.models.schema import ModelError, validate
from cudalint.models.traits import Trait, Traits
from cudalint.models.unfamiliar import Unfamiliar
from cudalint.models.vocabulary import Vocabulary, is_recognised_by_name
from cudalint.structs import Frozen, Mutable, field

Spec = Mapping[str, object]

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_BUILTINS = frozenset(dir(builtins))
_WORD = re.compile(r"[A-Za-z_]\w*")
# Types above one another; the largest class hierarchies have a dozen.
MOST_BASES = 50

# What the models of attributes end with: what reading one does, and setting it.
_OF_ATTRIBUTES = frozenset({"__get__", "__set__"})


class ProcessEffect(Frozen):
    """What a function leaves behind in its process, beside what its result is.

    ``state`` is one of ``schema.STATES``, ``gives`` one of ``schema.GIVES`` or empty. ``shows``: what it does is seen
    outside of the process, so that a process that does it again makes a difference. ``pickles``: what it gives may
    travel to another process; False where no pickler takes it. ``felt_by``: the only functions that find what stays.
    ``ends``: what it gives does something when its process ends, as long as something holds it. ``when``: something
    stays only where one of these keyword arguments is given; ``unless``: only where none of these is.
    """

    state: str = "none"
    gives: str = ""
    shows: bool = False
    pickles: bool = True
    felt_by: tuple[str, ...] = ()
    ends: bool = False
    when: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


# What a file says that functions leave behind, in the order in which it does.
_Declared: TypeAlias = list[tuple[str, ProcessEffect]]


class Library(Mutable):
    """All models. Names are canonical: aliases of a library are folded into the name where it is defined."""

    functions: dict[str, Spec] = field(default_factory=dict)
    # What is said of all names that have a pattern: of several the longest counts.
    patterns: list[tuple[str, Spec]] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    bases: dict[str, list[str]] = field(default_factory=dict)
    constants: dict[str, Hashable] = field(default_factory=dict)
    arrays: dict[str, str] = field(default_factory=dict)
    # Methods that compute with an object where it lies, by their names, whatever it is.
    computing: set[str] = field(default_factory=set)
    # Parts of the names of methods that an object on a GPU may compute in.
    likely: set[str] = field(default_factory=set)
    # Parts of objects on a GPU that never lie there.
    aside: set[str] = field(default_factory=set)
    # Attributes of what lies on a GPU that are no methods, and lie there too.
    parts: set[str] = field(default_factory=set)
    # What is said of names in one word each, and the arguments that functions call, by their names.
    traits: Traits = field(default_factory=Traits)
    called_arguments: set[str] = field(default_factory=set)
    # What names say of what no model describes.
    unfamiliar: Unfamiliar = field(default_factory=Unfamiliar)
    modules: set[str] = field(default_factory=set)
    frameworks: set[str] = field(default_factory=set)
    # Those of their packages that put nothing on a GPU without a word.
    told: set[str] = field(default_factory=set)
    metadata: dict[str, frozenset[str]] = field(default_factory=dict)
    attributes: dict[str, frozenset[str]] = field(default_factory=dict)
    owned: set[str] = field(default_factory=set)
    roots: set[str] = field(default_factory=set)
    # By package: the oldest release that programs are taken to run with.
    least: dict[str, str] = field(default_factory=dict)
    # The top-level packages that may use a GPU.
    gpu_roots: set[str] = field(default_factory=set)
    # What of them uses one when it is called, by the last parts of the names, and the imports that do.
    gpu_functions: dict[str, set[bytes]] = field(default_factory=dict)
    effectful_imports: set[str] = field(default_factory=set)
    picklers: dict[str, str] = field(default_factory=dict)
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    process_effects: dict[str, ProcessEffect] = field(default_factory=dict)
    wide_process_effects: list[tuple[str, ProcessEffect]] = field(default_factory=list)
    # The top-level names of libraries of which effects are told.
    described: set[str] = field(default_factory=set)
    environment: dict[str, list[str]] = field(default_factory=dict)
    _canonical: dict[str, str] = field(default_factory=dict)
    _found: dict[str, Spec | None] = field(default_factory=dict)
    _effects: dict[str, ProcessEffect | None] = field(default_factory=dict)

    def canonical(self, path: str) -> str:
        """The name under which a library object is modelled."""
        known = self._canonical.get(path)
        if known is None:
            known = self._canonical[path] = self._resolve(path)
        return known

    def _resolve(self, path: str) -> str:
        for _ in range(5):
            parts = path.split(".")
            for end in range(len(parts), 0, -1):
                target = self.aliases.get(".".join(parts[:end]))
                if target is not None:
                    path = ".".join([target, *parts[end:]])
                    break
            else:
                return path
        return path

    def function(self, path: str) -> Spec | None:
        """The model of a function, method or attribute; methods are looked up along the bases of their type."""
        if path not in self._found:
            self._found[path] = self._find(path)
        return self._found[path]

    def _find(self, path: str) -> Spec | None:
        path = self.canonical(path)
        spec = self.functions.get(path)
        if spec is not None:
            return spec
        owner, _, name = path.rpartition(".")
        for base in self.bases.get(owner, ()):
            found = self.function(f"{base}.{name}")
            if found is not None:
                return found
        if name in _OF_ATTRIBUTES:
            kind, _, attribute = owner.rpartition(".")
            for base in self.bases.get(kind, ()):
                found = self.function(f"{base}.{attribute}.{name}")
                if found is not None:
                    return found
        made = self.made(owner) if "." in owner else None
        if made is not None and (found := self.function(f"{made}.{name}")) is not None:
            return found
        if name in self.aside or (name.startswith("__") and name != "__call__"):
            return None
        wide = [found for found in self.patterns if lies_below(path, found[0])]
        return max(wide, key=lambda found: len(found[0]))[1] if wide else None

    def declared(self, owner: str, name: str) -> str | None:
        """The name under which a method of a type is described: its own, or that of the base which has it."""
        if f"{owner}.{name}" in self.functions:
            return f"{owner}.{name}"
        return next((found for base in self.bases.get(owner, ()) if (found := self.declared(base, name))), None)

    def holds_functions(self, path: str) -> bool:
        """Whether a name is that of a module or class some of whose functions are modelled."""
        begun = f"{self.canonical(path)}."
        return any(name.startswith(begun) for name in self.functions)

    def is_a(self, kind: str, base: str) -> bool:
        """Whether a library type is, or derives from, another."""
        kind = self.canonical(kind)
        if kind == base:
            return True
        if any(self.is_a(b, base) for b in self.bases.get(kind, ())):
            return True
        made = self.made(kind)
        return made is not None and self.is_a(made, base)

    def is_called(self, kind: str, name: str) -> bool | None:
        """Whether what is of a library type is of the class with this name, its module left out; None if unknown."""
        named = [path for path in self.bases if path.rpartition(".")[2] == name]
        if any(self.is_a(kind, path) for path in named):
            return True
        return None if not named or any(self.is_a(path, kind) for path in named) else False

    def made(self, kind: str) -> str | None:
        """The type of what calling a class makes, where that is not known by the name of the class."""
        spec = self.function(kind)
        made = None if spec is None else spec.get("type")
        return made if isinstance(made, str) and made != kind else None

    def lacks(self, kind: str, name: str) -> bool:
        """Whether a type whose public attributes are all known has none of this name."""
        kind = self.canonical(kind)
        known = self.attributes.get(kind)
        if known is None or name in known or name.startswith("_"):
            return False
        return all(self.lacks(base, name) for base in self.bases.get(kind, ()))

    def views(self, name: str) -> bool:
        """Whether a method of a tensor gives views of it, or itself: as torch calls them, those that change it do."""
        spec = self.function(f"torch.Tensor.{name}")
        if spec is None:
            return name.endswith("_") and not name.startswith("_") and not self.lacks("torch.Tensor", name)
        return spec.get("returns") == "several" or (spec.get("does") == "nothing" and spec.get("returns") == "self")

    def process_effect(self, path: str) -> ProcessEffect | None:
        """What a function leaves behind in its process; None where no model says anything of it.

        A modelled function of which no effect is said leaves nothing behind. What is said of a name goes before what is
        said of all names that match a pattern.
        """
        path = self.canonical(path)
        if path not in self._effects:
            self._effects[path] = self._find_effect(path)
        return self._effects[path]

    def feels(self, path: str, felt_by: Iterable[str]) -> bool:
        """Whether a function finds what stays in its process, as it says who does: ``~a`` are all without a trait."""
        return any(
            not self.traits.has(path, name[1:]) if name.startswith("~") else lies_below(path, name) for name in felt_by
        )

    def _find_effect(self, path: str) -> ProcessEffect | None:
        found = self._declared_effect(path, 0)
        spec = self.function(path)
        if found is None and spec is not None and "state" in spec:
            return ProcessEffect(str(spec["state"]))
        if found is None:
            below = (effect for pattern, effect in reversed(self.wide_process_effects) if lies_below(path, pattern))
            found = next(below, None)
        return ProcessEffect() if found is None and spec is not None else found

    def _declared_effect(self, path: str, depth: int) -> ProcessEffect | None:
        """What an ``[[effect]]`` says of a name, or of the method of a base."""
        found = self.process_effects.get(path)
        owner, _, name = path.rpartition(".")
        for base in self.bases.get(owner, ()) if depth < 5 else ():
            found = found or self._declared_effect(f"{base}.{name}", depth + 1)
        return found

    def reads_at_import(self, root: str, variable: str) -> bool:
        """Whether the import of a top-level package may look at a variable of the environment."""
        if root in sys.stdlib_module_names:
            root = "python"
        names = self.environment.get(root)
        return names is None or any(fnmatchcase(variable, name) for name in names)

    def framework_of(self, path: str) -> str | None:
        """The framework whose arrays the functions under this name work on."""
        parts = path.split(".")
        for end in range(len(parts), 0, -1):
            found = self.arrays.get(".".join(parts[:end]))
            if found is not None:
                return found
        return None

    def is_builtin(self, name: str) -> bool:
        """Whether a bare name is one of Python's builtins."""
        return name in _BUILTINS

    def is_imported_module(self, path: str) -> bool:
        """Whether importing this name from its package imports a module that does something."""
        return f"import {path}" in self.functions

    def computes(self, name: str) -> bool:
        """Whether a method of this name computes with an object that lies on a device, whatever it is."""
        return name in self.computing or f"{name.partition('_')[0]}_" in self.computing

    def may_compute(self, name: str) -> bool:
        """Whether a method of this name, of an object that may lie on a device, may compute with it."""
        return self.computes(name) or any(part in name for part in self.likely)

    def is_aside(self, path: str) -> bool:
        """Whether what this names belongs to a part of an object that never lies on a GPU, such as its tokenizer."""
        return not self.aside.isdisjoint(path.split("."))

    def decorates(self, path: str) -> bool:
        """Whether a library function means something as a decorator."""
        spec = self.function(path)
        return spec is not None and spec.get("decorator") is True

    def exports(self, module: str) -> list[str]:
        """The modelled names of a module, and classes with modelled methods, for ``from module import *``."""
        prefix = module + "."
        below = [path[len(prefix) :].partition(".") for path in self.functions if path.startswith(prefix)]
        return sorted({name for name, dot, _ in below if not dot or name[:1].isupper()})

    def knows(self, name: str) -> bool:
        """Whether a top-level name is a library that is modelled: one that is installed where it is imported."""
        return name in self.roots

    def is_of_other_hardware(self, module: str) -> bool:
        """Whether a module is of a package that is not there on a machine with CUDA."""
        first, _, rest = module.partition(".")
        kind = "of-other-hardware"
        return self.traits.has(first, kind) or self.traits.has(f"{first}.{rest.partition('.')[0]}", kind)

    def describes(self, name: str) -> bool:
        """Whether a model says anything of a library with this top-level name."""
        return name in self.roots or name in self.described

    def owns(self, name: str) -> bool:
        """Whether a top-level name is a library whose own functions are modelled, even in its own source."""
        return name in self.owned


def _add(library: Library, document: Mapping[str, object], source: str) -> _Declared:
    """Add a file to the models, except what its functions leave behind, which is given."""
    validate(document, source)
    head = document.get("library")
    head = head if isinstance(head, dict) else {}
    framework = head.get("framework")
    if framework:
        library.frameworks.update(head.get("roots", [framework]))
        if framework == _TOLD:
            library.told.update(_list(head.get("roots")))
    for alias, target in _table(document, "alias").items():
        library.aliases[alias] = str(target)
    for path, value in _table(document, "constant").items():
        library.constants[path] = value if isinstance(value, Hashable) else None
    for path, name in _table(document, "arrays").items():
        library.arrays[path] = str(name)
    library.computing.update(_list(_table(document, "methods").get("compute")))
    library.likely.update(_list(_table(document, "methods").get("likely")))
    library.aside.update(_list(_table(document, "methods").get("aside")))
    library.parts.update(_list(_table(document, "methods").get("parts")))
    library.called_arguments.update(_list(_table(document, "arguments").get("called")))
    library.unfamiliar.learn(_table(document, "unfamiliar"))
    _add_names(library, document)
    library.gpu_roots.update(_gpu_roots(document, framework))
    _add_gpu_functions(library, document)
    library.vocabulary.know(_table(document, "words"))
    declared: _Declared = []
    for entry in _entries(document, "effect"):
        _add_effect(library, entry, declared)
    for entry in _entries(document, "function"):
        _add_function(library, entry, framework, declared)
    library.owned.update(_list(head.get("owns")))
    if isinstance(least := head.get("least"), str):
        library.least.update(dict.fromkeys(_list(head.get("owns")), least))
    return declared


def _add_names(library: Library, document: Mapping[str, object]) -> None:
    """What a file says of traits, packages and types: what is no function."""
    for entry in _entries(document, "trait"):
        place = entry.get("place")
        for name in _list(entry["names"]):
            library.traits.add(name, Trait(str(entry["is"]), place if isinstance(place, int) else None))
    for path, names in _table(document, "metadata").items():
        library.metadata[path] = frozenset(names if isinstance(names, list) else [])
    for root, variables in _table(document, "environment").items():
        library.environment.setdefault(root, []).extend(_list(variables))
    library.picklers.update((k, str(v)) for k, v in _table(document, "pickler").items())
    for entry in _entries(document, "type"):
        library.bases[str(entry["name"])] = [str(b) for b in _list(entry.get("bases"))]
        if "attributes" in entry:
            library.attributes[str(entry["name"])] = frozenset(_list(entry["attributes"]))


def _add_function(library: Library, entry: dict[str, object], framework: object, declared: _Declared) -> None:
    library.vocabulary.learn(entry)
    spec = {**entry, "framework": entry.get("framework", framework)}
    for name in _list(entry["names"]):
        library.roots.add(_root(name))
        if "*" in name:
            library.patterns.append((name, spec))
            continue
        library.functions[name] = _beside(library.functions.get(name), spec)
        if "state" in entry:
            declared.append((name, ProcessEffect(str(entry["state"]))))


def _beside(known: Spec | None, spec: Spec) -> Spec:
    """An entry with those of other releases that were read before it."""
    if known is None or "releases" not in known or "releases" not in spec:
        return spec
    others = known.get("others", ())
    return {**spec, "others": (*(others if isinstance(others, tuple) else ()), known)}


# Effects of libraries that use a GPU by themselves, though none of their functions is said to.
_ON_GPU = frozenset({"engine", "estimator", "fabric", "trainer", "text-pipe", "placed", "keras.model"})
# Puts nothing on a GPU unless it is told so, by words that are looked for in the text.
_TOLD = "torch"


def _gpu_roots(document: Mapping[str, object], framework: object) -> Iterable[str]:
    """The packages of a model file that may use a GPU, and those that are other names for them."""
    found: set[str] = set()
    for entry in _entries(document, "function"):
        if framework or (_may_use_gpu(entry) and not _is_marked(entry)):
            found.update(_root(name) for name in _list(entry["names"]))
    found -= {"?", "cudalint"}
    yield from found
    yield from (_root(alias) for alias, target in _table(document, "alias").items() if _root(str(target)) in found)


def _may_use_gpu(entry: Mapping[str, object]) -> bool:
    return entry.get("gpu", "none") != "none" or entry.get("does") in _ON_GPU


def _is_marked(entry: Mapping[str, object]) -> bool:
    """Whether other words than the name of its package show that something uses a GPU: those of a package for that."""
    return entry.get("does") == "gpu" and "marks" in entry


def _add_gpu_functions(library: Library, document: Mapping[str, object]) -> None:
    """Note what uses a GPU when it is called or imported, but of torch: its uses are told from the text."""
    known = library.gpu_functions
    for entry in _entries(document, "function"):
        if not _may_use_gpu(entry) or _is_marked(entry):
            continue
        for name in _list(entry["names"]):
            if name.startswith("import "):
                library.effectful_imports.add(name.removeprefix("import "))
            elif _root(name) not in library.told:
                known.setdefault(_root(name), set()).add(name.rpartition(".")[2].encode())
    for alias, target in _table(document, "alias").items():
        if "." not in alias and _root(str(target)) in known:
            known.setdefault(alias, set()).update(known[_root(str(target))])


def _root(path: str) -> str:
    return path.removeprefix("import ").partition(".")[0]


def _add_effect(library: Library, entry: Mapping[str, object], declared: _Declared) -> None:
    effect = ProcessEffect(
        str(entry.get("state", "none")),
        str(entry.get("gives", "")),
        entry.get("shows") is True,
        entry.get("pickle") != "never",
        tuple(_list(entry.get("felt-by"))),
        entry.get("ends") is True,
        tuple(_list(entry.get("when"))),
        tuple(_list(entry.get("unless"))),
    )
    for name in _list(entry["names"]):
        library.described.add(_root(name))
        if name.endswith("*"):
            library.wide_process_effects.append((name, effect))
        else:
            declared.append((name, effect))


def _settle_effects(library: Library, declared: Iterable[tuple[str, _Declared]]) -> None:
    """Take what all files say under the names where functions are defined; a later file says better."""
    for source, effects in declared:
        given: dict[str, ProcessEffect] = {}
        for name, effect in effects:
            if given.setdefault(library.canonical(name), effect) != effect:
                raise ModelError(f"{source}: {name} is said to leave two different things behind in its process")
        library.process_effects.update(given)


def lies_below(path: str, pattern: str) -> bool:
    """``a.*`` are the names directly below ``a``, ``a.**`` those at any depth, ``a.*Model.b`` those of such classes."""
    if pattern.endswith(".**"):
        return path.startswith(pattern[:-2])
    before, star, after = pattern.partition("*")
    if not star:
        return path == pattern
    within = path[len(before) : len(path) - len(after)]
    return path.startswith(before) and path.endswith(after) and "." not in within


def _recognising_words(names: Iterable[str]) -> Iterable[bytes]:
    """The words by which a file that uses these functions can be recognised."""
    for name in names:
        path = name.removeprefix("import ")
        for word in (path.partition(".")[0], path.removesuffix(".*").rpartition(".")[2]):
            if _WORD.fullmatch(word) and word not in _BUILTINS and not word.startswith("__"):
                yield word.encode()


def _table(document: Mapping[str, object], key: str) -> dict[str, object]:
    found = document.get(key)
    return found if isinstance(found, dict) else {}


def _entries(document: Mapping[str, object], key: str) -> list[dict[str, object]]:
    found = document.get(key)
    return found if isinstance(found, list) else []


def _list(value: object) -> list[str]:
    return [str(v) for v in value] if isinstance(value, list) else []


def load(extra: Iterable[str] = ()) -> Library:
    """The shipped models and the user's as they are now; raises ``ModelError`` for a bad one."""
    return _load(tuple((path, _text(path)) for path in extra))


def _text(path: str) -> str:
    try:
        return disk.read(path, disk.MOST_SETTINGS_BYTES).decode()
    except (disk.Unreadable, UnicodeDecodeError) as error:
        raise ModelError(f"{path}: no model file: {error}") from error


@cache
def shipped() -> tuple[tuple[str, Mapping[str, object]], ...]:
    """The files of models that come with cudalint, by name."""
    # Not by importlib.resources: to import that takes a third as long as all that is done here.
    names = sorted(name for name in os.listdir(_FOLDER) if name.endswith(".toml"))
    return tuple((name, tomli.loads(_shipped(name))) for name in names)


def _shipped(name: str) -> str:
    with open(os.path.join(_FOLDER, name), encoding="utf-8") as stream:
        return stream.read()


@cache
def _load(extra: tuple[tuple[str, str], ...]) -> Library:
    library = Library()
    declared = [(name, _add(library, document, name)) for name, document in shipped()]
    for path, text in extra:
        try:
            document = tomli.loads(text)
        except tomli.TOMLDecodeError as error:
            raise ModelError(f"{path}: not valid TOML: {error}") from error
        except RecursionError:
            raise ModelError(f"{path}: not valid TOML: nested too deeply") from None
        declared.append((path, _add(library, document, path)))
        for function in _entries(document, "function"):
            library.vocabulary.own.update(_recognising_words(_list(function["names"])))
        _refuse_circles(library, path)
    _settle_effects(library, declared)
    _settle_words(library)
    return library


def _settle_words(library: Library) -> None:
    """The packages that may use a GPU, other names of what starts something, and the words of the user's own models."""
    words = library.vocabulary
    for alias in library.aliases:
        spec = library.functions.get(library.canonical(alias))
        if spec is not None and is_recognised_by_name(spec):
            words.also_called(alias)
    words.gpu.update(name.encode() for name in library.frameworks)
    # Of a package whose functions for a GPU all say so in their names, others need no look.
    told = {word.decode() for word in words.gpu}
    names = (*library.functions, *(pattern for pattern, _ in library.patterns))
    quiet = {_root(name) for name in names if told.isdisjoint(name.split("."))}
    using = {_root(name) for name in (*library.gpu_functions, *library.effectful_imports)}
    words.packages.update(name.encode() for name in (using & quiet) - library.frameworks - {"?"})


def _refuse_circles(library: Library, source: str) -> None:
    """Types that derive from themselves have no order in which to look for a method."""
    settled: set[str] = set()
    for name in library.bases:
        _settle_bases(library, library.canonical(name), (), settled, source)


def _settle_bases(library: Library, name: str, below: tuple[str, ...], settled: set[str], source: str) -> None:
    if name in below:
        circle = (*below[below.index(name) :], name)
        raise ModelError(f"{source}: type {name} derives from itself: {' -> '.join(circle)}")
    if len(below) > MOST_BASES:
        raise ModelError(f"{source}: type {below[0]} has more than {MOST_BASES} types above one another")
    if name in settled:
        return
    for base in library.bases.get(name, ()):
        _settle_bases(library, library.canonical(base), (*below, name), settled, source)
    settled.add(name)
