"""All kinds of state by name."""

from __future__ import annotations

from oracle.inherited import State
from oracle.inherited_carried import CARRIED
from oracle.inherited_library import LIBRARIES
from oracle.inherited_module import MODULES
from oracle.inherited_nothing import NOTHING, REPEATED
from oracle.inherited_process import PROCESS
from oracle.inherited_program import PROGRAM
from oracle.inherited_reached import REACHED
from oracle.inherited_stays import STAYS

FAMILIES: dict[str, dict[str, State]] = {
    "program": PROGRAM,
    "reached": REACHED,
    "modules": MODULES,
    "process": PROCESS,
    "libraries": LIBRARIES,
    "repeated": REPEATED,
    "nothing": NOTHING,
    "carried": CARRIED,
    "stays": STAYS,
}
STATES: dict[str, State] = {name: state for family in FAMILIES.values() for name, state in family.items()}
