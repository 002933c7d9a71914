"""Selection by code prefix: the longer prefix wins, a later layer beats an earlier one.

The priorities are ruff's: ``select`` starts afresh, ``extend-select`` and ``ignore`` adjust, and within a
layer a more specific prefix beats a less specific one, whichever way it points.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cudalint.structs import Frozen

ALL = "ALL"
# Findings about the run itself: shown whatever is selected, hidden only by an explicit ignore.
ALWAYS_ON = frozenset({"CUD900", "CUD901"})


class Layer(Frozen):
    """One source of selectors: the configuration file, or the command line."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the layer says nothing."""
        return self.select is None and not self.extend_select and not self.ignore


class Selection(Frozen):
    """The codes that a run shows. Without any selector that is every code."""

    layers: tuple[Layer, ...] = ()

    def shows(self, code: str) -> bool:
        """Whether findings of ``code`` are shown."""
        shown = True
        carried: tuple[str, ...] = ()
        for layer in self.layers:
            if layer.select is None:
                carried = (*carried, *layer.ignore)
                shown = _verdict(code, layer.extend_select, layer.ignore, otherwise=shown)
                continue
            base = (*layer.select, *layer.extend_select)
            shown = _verdict(code, base, (*carried, *layer.ignore), otherwise=code in ALWAYS_ON)
            carried = ()
        return shown

    def below(self, layer: Layer) -> Selection:
        """The selection with a layer that beats the others."""
        return self if layer.is_empty else Selection((*self.layers, layer))

    def shows_any(self, codes: Iterable[str]) -> bool:
        """Whether findings about programs are shown at all, beside those about the run itself."""
        return any(self.shows(code) for code in codes if code not in ALWAYS_ON)


def matches(selectors: Iterable[str], code: str) -> bool:
    """Whether one of the selectors names ``code``."""
    return _specificity(selectors, code) is not None


def most_specific(selectors: Iterable[str], code: str) -> str | None:
    """The longest selector that names ``code``, if any does."""
    return max(
        (one for one in selectors if matches((one,), code)), key=lambda one: one != ALL and len(one), default=None
    )


def is_selector(text: str, codes: Sequence[str]) -> bool:
    """Whether ``text`` names at least one of ``codes``."""
    return text == ALL or (bool(text) and any(code.startswith(text) for code in codes))


def _verdict(code: str, on: Iterable[str], off: Iterable[str], *, otherwise: bool) -> bool:
    wanted, unwanted = _specificity(on, code), _specificity(off, code)
    if unwanted is None:
        return otherwise or wanted is not None
    # Of two equally specific selectors the one that hides wins.
    return wanted is not None and wanted > unwanted


def _specificity(selectors: Iterable[str], code: str) -> int | None:
    """The length of the longest selector that names ``code``."""
    lengths = [0 if text == ALL else len(text) for text in selectors if text == ALL or code.startswith(text)]
    return max(lengths, default=None)
