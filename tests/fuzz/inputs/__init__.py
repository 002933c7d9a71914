"""Where programs come from, by name: each source makes a case from a number."""

from __future__ import annotations

from collections.abc import Callable

from fuzz.case import Case
from fuzz.inputs import grammar, growing, hostile, mutants

Source = Callable[[int], Case]
SOURCES: dict[str, Source] = {
    "mutants": mutants.draw,
    "hostile": hostile.draw,
    "grammar": grammar.draw,
    "growing": growing.draw,
}
