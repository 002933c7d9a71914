"""Whether a fixture can run here, and what it needs to itself."""

from __future__ import annotations

import multiprocessing
import re
import sys
from collections.abc import Mapping

from cudalint.verify.gpus import Need
from cudalint.verify.headers import Fixture
from cudalint.verify.surroundings import HARDWARE, Surroundings

_NAME = re.compile(r"[A-Za-z0-9._-]+")
# Distributions whose module has another name.
_MODULES = {
    "cupy-cuda11x": "cupy",
    "cupy-cuda12x": "cupy",
    "cupy-cuda13x": "cupy",
    "hydra-core": "hydra",
    "numba-cuda": "numba.cuda",
    "scikit-learn": "sklearn",
}
# What stubs start workers or pickle functions by, as what they stand for does.
_RESTS_ON = {
    "dask_cuda": "cloudpickle",
    "datasets": "multiprocess",
    "pathos": "multiprocess",
    "ray": "cloudpickle",
    "sklearn": "joblib",
    "skorch": "joblib",
}
# They take most of a GPU's memory when they start, unless this tells them otherwise.
_GREEDY = {
    "jax": {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    "tensorflow": {"TF_FORCE_GPU_ALLOW_GROWTH": "true"},
}
# Fixtures in which just that decides how they end.
_ABOUT_GREED = re.compile(r"CUD206|PREALLOCATE|MEM_FRACTION|memory_growth|ALLOW_GROWTH")
# What a program measures when others on its GPU would falsify the number.
_AMOUNT = re.compile(r"mib|gib|memory|seconds", re.IGNORECASE)


def obstacle(fixture: Fixture, gpus: int, surroundings: Surroundings = HARDWARE) -> str | None:
    """Why a fixture cannot run here; ``None`` if it can."""
    header = fixture.header
    if header.gpus > gpus:
        return f"needs {header.gpus} GPUs, there {'is' if gpus == 1 else 'are'} {gpus}"
    missing = list(dict.fromkeys(filter(None, (_missing(name, surroundings) for name in header.dependencies))))
    if missing:
        return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
    if header.network and surroundings.is_hardware and not surroundings.reaches_models():
        return "needs a model from huggingface.co, which cannot be reached"
    if header.start_method is not None and header.start_method != default_start_method():
        return f"relies on the default start method {header.start_method}; here it is {default_start_method()}"
    return None


def need(fixture: Fixture, surroundings: Surroundings = HARDWARE) -> Need:
    """What a fixture must be given."""
    header = fixture.header
    if not surroundings.is_hardware:
        return Need(header.gpus)
    measures = _AMOUNT.search(header.measure or "") is not None
    return Need(header.gpus, measures or (bool(_greedy(fixture)) and _is_about_greed(fixture)))


def manners(fixture: Fixture, surroundings: Surroundings = HARDWARE) -> Mapping[str, str]:
    """The variables with which a fixture leaves memory of its GPU to others; none where it runs alone."""
    if not surroundings.is_hardware or need(fixture, surroundings).alone:
        return {}
    return {name: value for library in _greedy(fixture) for name, value in _GREEDY[library].items()}


def _greedy(fixture: Fixture) -> list[str]:
    return [name for name in map(_distribution, fixture.header.dependencies) if name in _GREEDY]


def _is_about_greed(fixture: Fixture) -> bool:
    return _ABOUT_GREED.search(f"{fixture.name}\n{fixture.path.read_text(encoding='utf-8')}") is not None


def default_start_method() -> str:
    """How this Python starts processes unless told; asking fixes nothing."""
    if sys.platform != "linux":
        return "spawn"
    return "forkserver" if sys.version_info >= (3, 14) else multiprocessing.get_all_start_methods()[0]


def _missing(requirement: str, surroundings: Surroundings) -> str | None:
    """What is not installed of it: itself, or what its stub rests on."""
    name = _distribution(requirement)
    if not surroundings.has_module(_module(name)):
        return name
    rests_on = None if surroundings.is_hardware else _RESTS_ON.get(_module(name))
    return rests_on if rests_on is not None and not HARDWARE.has_module(rests_on) else None


def _distribution(requirement: str) -> str:
    match = _NAME.match(requirement)
    return match[0].lower() if match else requirement


def _module(distribution: str) -> str:
    return _MODULES.get(distribution, distribution.replace("-", "_"))
