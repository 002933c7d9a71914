"""How many processes may usefully run at the same time."""

from __future__ import annotations

import os

# Each process costs the memory of the files that are checked; beyond these, most would wait for the longest group.
MOST = 8
# On two cores the clock of torch's sources gains a third, and that of lightning's nothing.
FEWEST = 4
_QUOTA = "/sys/fs/cgroup/cpu.max"


def usable() -> int:
    """The cores that this process may use: those of its affinity, and no more than a container's share of them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _share(), MOST))


def by_default() -> int:
    """How many processes run entries where nobody says: on fewer cores, what each reads again takes what it gains."""
    cores = usable()
    return cores if cores >= FEWEST else 1


def _share() -> int:
    """The cores that a control group pays for, rounded up."""
    try:
        with open(_QUOTA, encoding="ascii") as stream:
            quota, period = stream.read().split()
        return MOST if quota == "max" else -(-int(quota) // int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return MOST
