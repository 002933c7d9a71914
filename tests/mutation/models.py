"""Mutants of the models: an entry that is missing, that does something else, or that lacks what it says."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from cudalint.models import library
from mutation.mutant import Mutant
from mutation.watching import Watch, unwatched

Document = dict[str, Any]

# Said for readers; nothing that the machine does rests on it.
_WORDS = frozenset({"names", "evidence", "versions", "note"})
# What a function may do to the driver, and what is said in its place.
_OTHER_GPU = {"use": "query", "init": "query", "touch": "query", "query": "use", "driver": "none"}
_OTHER_METHOD = {"fork": "spawn", "spawn": "fork", "forkserver": "fork"}


@dataclass(frozen=True, slots=True)
class ModelMutant(Mutant):
    """A change of one file of models; ``things`` are what tests that could notice it have asked for."""

    things: tuple[Hashable, ...]
    change: Callable[[Document], None]

    def watch(self, watch: Watch) -> None:
        """Models are watched as a whole."""

    def noticed_by(self, watch: Watch) -> set[str]:
        found: set[str] = set()
        for thing in self.things:
            match thing:
                case (what, str(pattern)) if "*" in pattern:
                    found |= watch.of(t for t in watch.used if _matches(t, what, pattern))
                case _:
                    found |= watch.of([thing])
        return found

    def apply(self) -> None:
        documents = [(name, dict(document)) for name, document in library.shipped()]
        for name, document in documents:
            if name == self.file:
                document.update(copy.deepcopy(document))
                self.change(document)
        unwatched()
        library.shipped = lambda: tuple(documents)


def _matches(thing: Hashable, what: object, pattern: str) -> bool:
    if not (isinstance(thing, tuple) and thing[0] == what and isinstance(thing[1], str)):
        return False
    return library.lies_below(thing[1], pattern)


def model_mutants() -> Iterator[ModelMutant]:
    """All mutants of all files of models."""
    for file, document in library.shipped():
        for found in (_functions, _effects, _types, _tables):
            yield from found(file, document)


def _functions(file: str, document: Any) -> Iterator[ModelMutant]:
    for index, entry in enumerate(document.get("function", ())):
        names = entry["names"]
        releases = f" of {entry['releases']}" if "releases" in entry else ""
        for name in names:
            asked = ("asked", name) if "*" in name else ("functions", name)
            yield ModelMutant("model entry", file, f"no {name}{releases}", (asked,), _without("function", index, name))
        for key, value in entry.items():
            if key not in _WORDS and (key, value) != ("does", "nothing"):
                other = _other(key, value)
                words = f"{names[0]}: no {key}" if other is None else f"{names[0]}: {key} {other}"
                read: tuple[Hashable, ...] = (("key", names[0], key),)
                if key == "state":
                    read = tuple(("effect", name) for name in names)
                yield ModelMutant("model key", file, words, read, _changed("function", index, key, other))


def _other(key: str, value: Any) -> Any:
    """What is said instead; None to say nothing."""
    match key:
        case "does":
            return "nothing"
        case "gpu":
            return _OTHER_GPU.get(value)
        case "method":
            return _OTHER_METHOD.get(value)
        case "failure":
            return dict.fromkeys(value, "cost")
    return None


def _effects(file: str, document: Any) -> Iterator[ModelMutant]:
    for index, entry in enumerate(document.get("effect", ())):
        names = entry["names"]
        for name in names:
            yield ModelMutant(
                "effect name", file, f"no effect of {name}", (("effect", name),), _without("effect", index, name)
            )
        for key in entry.keys() - {"names"}:
            things = tuple(("effect", name) for name in names)
            words = f"effect of {names[0]} and others: no {key}"
            yield ModelMutant("effect key", file, words, things, _changed("effect", index, key, None))


def _types(file: str, document: Any) -> Iterator[ModelMutant]:
    for index, entry in enumerate(document.get("type", ())):
        for key in entry.keys() - {"name"}:
            table = "bases" if key == "bases" else "attributes"
            words = f"type {entry['name']}: no {key}"
            yield ModelMutant("model type", file, words, ((table, entry["name"]),), _changed("type", index, key, None))


_TABLES = {"alias": "aliases", "constant": "constants", "arrays": "arrays", "pickler": "picklers"}


def _tables(file: str, document: Any) -> Iterator[ModelMutant]:
    for table, where in _TABLES.items():
        for key in document.get(table, {}):
            yield ModelMutant(f"model {table}", file, f"no {table} {key}", ((where, key),), _dropped(table, key))
    for table in ("metadata", "environment"):
        for key, items in document.get(table, {}).items():
            for item in items:
                words = f"{table} {key} without {item}"
                yield ModelMutant(f"model {table}", file, words, ((table, key),), _item_dropped(table, key, item))


def _without(table: str, index: int, name: str) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        entry = document[table][index]
        entry["names"].remove(name)
        if not entry["names"]:
            del document[table][index]

    return change


def _changed(table: str, index: int, key: str, value: Any) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        if value is None:
            del document[table][index][key]
        else:
            document[table][index][key] = value

    return change


def _dropped(table: str, key: str) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        del document[table][key]

    return change


def _item_dropped(table: str, key: str, item: str) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        document[table][key].remove(item)

    return change
