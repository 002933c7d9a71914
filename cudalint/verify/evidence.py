"""Evidence: one JSON file per machine and versions, with a hash for every fixture that was measured there."""

from __future__ import annotations

import datetime
import json
import platform
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import TypeAlias, cast

from cudalint import __version__
from cudalint.structs import Frozen
from cudalint.verify.gpus import Gpus
from cudalint.verify.observe import Observation
from cudalint.verify.surroundings import HARDWARE, Surroundings
from cudalint.verify.verdict import Status, Verdict

SCHEMA = 1
Json: TypeAlias = "Mapping[str, Json] | list[Json] | str | int | float | bool | None"
Document: TypeAlias = dict[str, Json]
# Whose versions a result belongs to, where they are installed.
_LIBRARIES = (
    "accelerate",
    "billiard",
    "celery",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "dask-cuda",
    "datasets",
    "gunicorn",
    "jax",
    "joblib",
    "lightning",
    "multiprocess",
    "numba",
    "numba-cuda",
    "nvidia-nccl-cu12",
    "nvidia-nccl-cu13",
    "pathos",
    "ray",
    "scikit-learn",
    "sentence-transformers",
    "skorch",
    "spacy",
    "tensorflow",
    "torch",
    "torch-geometric",
    "transformers",
    "vllm",
)


class EvidenceError(ValueError):
    """Evidence cannot be kept where it should be; the text is one clear line."""


class Place(Frozen):
    """The machine and the versions that a result belongs to."""

    gpus: tuple[str, ...]
    driver: str
    system: str
    python: str
    versions: Mapping[str, str]
    is_hardware: bool = True

    @property
    def file_name(self) -> str:
        """The name of this place's file: GPU and count, Python, torch."""
        gpu = self.gpus[0] if self.gpus else "no-gpu"
        torch = self.versions.get("torch")
        parts = [f"{len(self.gpus)}x-{gpu}", f"py{self.python.rpartition('.')[0]}"]
        parts += [f"torch{torch.partition('+')[0]}"] if torch else []
        return re.sub(r"[^a-z0-9._]+", "-", "-".join(parts).lower()) + ".json"


def this_place(gpus: Gpus, surroundings: Surroundings = HARDWARE) -> Place:
    """This machine, with the versions of what programs import here; stubs have none."""
    return Place(
        gpus=tuple(gpu.name for gpu in gpus.devices),
        driver=gpus.driver,
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        versions=_versions() if surroundings.is_hardware else {},
        is_hardware=surroundings.is_hardware,
    )


def head(place: Place) -> Document:
    """What every document says of where it was made."""
    return {
        "schema": SCHEMA,
        "cudalint": __version__,
        "machine": {
            "gpus": list(place.gpus),
            "driver": place.driver,
            "system": place.system,
            "python": place.python,
        },
        **({} if place.is_hardware else {"paper": True}),
        "versions": dict(sorted(place.versions.items())),
    }


def document(place: Place, verdicts: Iterable[Verdict]) -> Document:
    """The evidence of one run."""
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    ordered = sorted(verdicts, key=lambda verdict: verdict.fixture.name)
    return {**head(place), "fixtures": {verdict.fixture.name: entry(verdict, today) for verdict in ordered}}


def entry(verdict: Verdict, date: str) -> Document:
    """What is kept of one fixture."""
    kept: Document = {
        "sha256": verdict.fixture.digest,
        "date": date,
        "verdict": verdict.status.value,
        "expected": verdict.fixture.header.outcome.value,
    }
    if verdict.observed is not None:
        kept["observed"] = verdict.observed.value
    if verdict.reasons:
        kept["reasons"] = list(verdict.reasons)
    if verdict.notes:
        kept["notes"] = list(verdict.notes)
    if verdict.predictions:
        kept["predicted"] = [
            {"finding": str(item), "severity": item.severity.value, "outcome": item.outcome}
            for item in verdict.predictions
        ]
    message = verdict.fixture.header.message
    if verdict.run is not None:
        kept["run"] = _run(verdict.run, message)
    if verdict.triggered is not None:
        kept["triggered"] = _run(verdict.triggered, message)
    if verdict.fixed is not None:
        kept["fixed"] = _run(verdict.fixed, None)
    return kept


def merge(older: Mapping[str, Json], newer: Mapping[str, Json]) -> Document:
    """Both, the newer result of each fixture. One that was not run now does not replace one that was.

    A library that is not installed now keeps the version with which its fixtures ran.
    """
    before = cast(Mapping[str, Json], older.get("fixtures") or {})
    now = cast(Mapping[str, Json], newer.get("fixtures") or {})
    merged = dict(before)
    for name, result in now.items():
        if name not in merged or not _adds_nothing(merged[name], result):
            merged[name] = result
    versions: dict[str, str] = {}
    for one in (older, newer):
        versions |= cast(Mapping[str, str], one.get("versions") or {})
    return {**newer, "versions": dict(sorted(versions.items())), "fixtures": dict(sorted(merged.items()))}


def prepare(folder: Path, place: Place) -> None:
    """Make the folder; raise ``EvidenceError`` where a run would have nowhere to leave what it saw."""
    path = folder / place.file_name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    except OSError as error:
        raise EvidenceError(f"{folder}: evidence cannot be kept here: {error.strerror}") from None
    except ValueError as error:
        raise EvidenceError(f"{path}: this is no evidence: {error}") from None
    if not isinstance(known, dict):
        raise EvidenceError(f"{path}: this is no evidence: not a table")


def save(folder: Path, place: Place, verdicts: Iterable[Verdict]) -> Path:
    """Write the evidence of a run beside what is there of the same machine and versions; gives the file."""
    path = folder / place.file_name
    made = document(place, verdicts)
    if path.exists():
        made = merge(json.loads(path.read_text("utf-8")), made)
    folder.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(dump(made), encoding="utf-8")
    part.replace(path)
    return path


def dump(made: Mapping[str, Json]) -> str:
    """The text of a document: one line per fixture, so that a change of one is a change of one line."""
    fixtures = cast(Mapping[str, Json], made["fixtures"])
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(fixtures[name], ensure_ascii=False)}" for name in fixtures)
    head = json.dumps({key: value for key, value in made.items() if key != "fixtures"}, indent=1, ensure_ascii=False)
    return f'{head.removesuffix("}").rstrip()},\n "fixtures": {{\n{lines}\n }}\n}}\n'


def _adds_nothing(known: Json, result: Json) -> bool:
    old, new = cast(Mapping[str, Json], known), cast(Mapping[str, Json], result)
    ran = old.get("verdict") != Status.NOT_RUN.value
    return ran and new.get("verdict") == Status.NOT_RUN.value and old.get("sha256") == new.get("sha256")


def _run(run: Observation, message: str | None) -> Document:
    kept: Document = {"end": run.summary, "seconds": round(run.seconds, 1)}
    if run.outcome.fails:
        kept["said"] = (run.quote(message) if message else None) or run.said
    if run.deaths:
        kept["deaths"] = {str(code): count for code, count in sorted(Counter(run.deaths).items())}
    if run.measured:
        kept["measured"] = dict(run.measured)
    if run.footprints:
        kept["processes"] = {gpu: list(held) for gpu, held in by_gpu(run)}
    return kept


def by_gpu(run: Observation) -> Iterator[tuple[str, list[int | None]]]:
    """Per physical GPU the memory of each process in MiB, the largest first; null where it is not known."""
    for gpu in sorted({one.gpu for one in run.footprints}):
        on_it = [one for one in run.footprints if one.gpu == gpu]
        yield str(gpu), [one.mib for one in sorted(on_it, key=lambda one: one.mib or 0, reverse=True)]


def _versions() -> dict[str, str]:
    return {name: version for name in _LIBRARIES if (version := _version(name))}


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
