"""What must hold, by name."""

from __future__ import annotations

from fuzz.properties import edits, growth, meaning, repairs, sameness, survival
from fuzz.properties.property import Property

PROPERTIES = {
    "survives": Property(survival.complaints),
    "repairs": Property(repairs.complaints, runs=12),
    "same": Property(sameness.complaints, runs=12),
    "edits": Property(edits.complaints, runs=12),
    "growth": Property(growth.complaints, runs=20),
    "meaning": Property(meaning.complaints, runs=8),
}
