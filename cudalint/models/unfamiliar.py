"""What the names of classes, functions and parameters say of them where no model describes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cudalint.structs import Mutable, field


class Unfamiliar(Mutable):
    """The words of all models, by kind. Names are dotted; those of functions are read word by word."""

    _words: dict[str, set[str]] = field(default_factory=dict)
    _ends: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def know(self, kind: str, words: Iterable[str]) -> None:
        """Add words of one kind."""
        known = self._words.setdefault(kind, set())
        known.update(words)
        self._ends[kind] = tuple(sorted(known))

    def keeps(self, path: str) -> bool:
        """Whether a class of this name keeps what it is told, for others to read."""
        return self._ends_with(path, "keepers")

    def notes(self, path: str) -> bool:
        """Whether a class of this name is about what is written down."""
        return self._ends_with(path, "notes")

    def works_with_texts(self, path: str) -> bool:
        """Whether a class of this name takes nothing but texts of a configuration."""
        return self._ends_with(path, "text-classes")

    def makes(self, path: str) -> bool:
        """Whether a function of this name makes something of what it is given."""
        return path.rpartition(".")[2].startswith(self._ends.get("makers", ()))

    def only_notes(self, path: str) -> bool:
        """Whether a function of this name notes, asks or says what it is told."""
        words = _words(path)
        return words[0] in self._of("tellers") or words[-1] in self._of("told")

    def only_asks(self, path: str) -> bool:
        """Whether a function of this name asks something of an object without reading its content."""
        words = _words(path)
        is_asker = words[0] in self._of("askers") and words[-1] in self._of("asked")
        return is_asker or words[0] in self._of("testers")

    def makes_current(self, path: str) -> bool:
        """Whether a function of this name may make a context current in the thread that calls it."""
        return not self._of("currents").isdisjoint(_words(path))

    def loads(self, path: str) -> bool:
        """Whether a function or class of this name makes a loader."""
        return path.lower().endswith(self._ends.get("loaders", ()))

    def is_dataset(self, path: str) -> bool:
        """Whether a class of this name is a dataset."""
        return self._ends_with(path, "datasets")

    def gives_item(self, name: str) -> bool:
        """Whether a method of this name gives one item of a dataset."""
        words = _words(name)
        return words[0] in self._of("givers") or not self._of("items").isdisjoint(words)

    def starts_processes(self, path: str) -> bool:
        """Whether a function of this name runs what it is given in processes."""
        name = path.rpartition(".")[2].lower()
        return not self._of("in-processes").isdisjoint(_words(path)) or name.startswith(self._ends.get("mappers", ()))

    @property
    def transforms(self) -> tuple[str, ...]:
        """Parameters by which datasets are told what to do with each item."""
        return self._ends.get("transforms", ())

    @property
    def readers(self) -> tuple[str, ...]:
        """Parameters that tell how many workers of a loader read a dataset."""
        return self._ends.get("readers", ())

    @property
    def devices(self) -> tuple[str, ...]:
        """Parameters that name a device by its type or a text."""
        return self._ends.get("devices", ())

    @property
    def switches(self) -> tuple[str, ...]:
        """Parameters that tell whether a GPU is used."""
        return self._ends.get("switches", ())

    @property
    def numbers(self) -> tuple[str, ...]:
        """Parameters that tell which GPU is used."""
        return self._ends.get("numbers", ())

    @property
    def processes(self) -> tuple[str, ...]:
        """Parameters that tell how many processes are to be started."""
        return self._ends.get("processes", ())

    @property
    def parallel(self) -> tuple[str, ...]:
        """Parameters that tell whether processes are to be started."""
        return self._ends.get("parallel", ())

    def learn(self, table: Mapping[str, object]) -> None:
        """Take over what a file says."""
        for kind, words in table.items():
            self.know(kind, map(str, words if isinstance(words, list) else ()))

    def _of(self, kind: str) -> set[str]:
        return self._words.get(kind, set())

    def _ends_with(self, path: str, kind: str) -> bool:
        return path.endswith(self._ends.get(kind, ()))


def _words(path: str) -> list[str]:
    return path.rpartition(".")[2].strip("_").split("_")
