"""What is said of names in one word each: what they do with files, how long they wait, what they look at."""

from __future__ import annotations

from cudalint.structs import Frozen, Mutable, field

# A pattern of a trait that means: whatever has this name last.
_WHATEVER = "**."


class Trait(Frozen):
    """A trait that a name has; ``place``: which of its arguments the trait is about, where that is one by position."""

    kind: str
    place: int | None = None


class Traits(Mutable):
    """The traits of all models. A name itself counts more than one it lies below, and this more than its last part."""

    _exact: dict[tuple[str, str], Trait] = field(default_factory=dict)
    _below: dict[str, list[tuple[str, Trait]]] = field(default_factory=dict)
    _last: dict[tuple[str, str], Trait] = field(default_factory=dict)
    _found: dict[tuple[str, str], Trait | None] = field(default_factory=dict)

    def add(self, name: str, trait: Trait) -> None:
        """Note a trait of a name, or of all names that match ``a.**`` or ``**.last``."""
        if name.startswith(_WHATEVER):
            self._last[trait.kind, name.removeprefix(_WHATEVER)] = trait
        elif name.endswith(".**"):
            self._below.setdefault(trait.kind, []).append((name[:-2], trait))
        else:
            self._exact[trait.kind, name] = trait

    def of(self, path: str, kind: str) -> Trait | None:
        """The trait of this kind that a name has, if it has one."""
        key = (kind, path)
        if key not in self._found:
            self._found[key] = self._find(path, kind)
        return self._found[key]

    def has(self, path: str, kind: str) -> bool:
        """Whether a name has a trait of this kind."""
        return self.of(path, kind) is not None

    def _find(self, path: str, kind: str) -> Trait | None:
        exact = self._exact.get((kind, path))
        if exact is not None:
            return exact
        for prefix, trait in reversed(self._below.get(kind, [])):
            if path.startswith(prefix):
                return trait
        return self._last.get((kind, path.rpartition(".")[2]))
