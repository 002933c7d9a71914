"""What hardware was seen to do, quoted from the evidence that comes with cudalint."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from cudalint.structs import Frozen

_PACKAGE = Path(__file__).resolve().parent
_Place: TypeAlias = tuple[str, str, str, str]
_Version: TypeAlias = tuple[int, int]
_SEEN = frozenset({"confirmed", "latent"})
_NOTEBOOKS = "notebooks"


class Proof(Frozen):
    """So many programs with a finding of a rule ended in one way on one kind of GPU, whatever their number."""

    code: str
    outcome: str
    programs: int
    gpu: str
    driver: str
    torch: str
    python: str = ""

    @property
    def place(self) -> str:
        """The GPU and the version of torch, as they are quoted."""
        return f"{self.gpu}, torch {'.'.join(self.torch.split('.')[:2])}" if self.torch else self.gpu

    @property
    def whole_place(self) -> str:
        """The same with the driver and the version of Python."""
        return f"{self.place}, driver {self.driver}{f', Python {self.python}' if self.python else ''}"


def proofs(code: str) -> tuple[Proof, ...]:
    """All that is known of a rule, the most frequent outcome of each kind of GPU first."""
    return tuple(proof for proof in _proofs() if proof.code == code)


def quote(code: str, outcome: str, versions: tuple[_Version, _Version] | None = None) -> str | None:
    """Where a finding of this rule was seen to end so, if it was, with one of these versions of Python."""
    found = [proof for proof in proofs(code) if proof.outcome == outcome and _is_within(proof.python, versions)]
    return max(found, key=lambda proof: proof.programs).place if found else None


def _is_within(python: str, versions: tuple[_Version, _Version] | None) -> bool:
    if versions is None:
        return True
    numbers = tuple(int(part) for part in python.split(".")[:2] if part.isdecimal())
    return len(numbers) == 2 and versions[0] <= numbers <= versions[1]


def section(code: str) -> str:
    """The part of a rule's page that quotes the evidence; empty where there is none."""
    lines = [
        f"- {proof.outcome}: {_counted(proof.programs, noun)} on {proof.whole_place}"
        for noun, found in (("program", proofs(code)), ("notebook", _in_notebooks(code)))
        for proof in found
    ]
    return "\n".join(["## Evidence", "", *lines]) if lines else ""


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number > 1 else ''}"


def _in_notebooks(code: str) -> Iterator[Proof]:
    """Notebooks whose cells showed findings of a rule, by how they ended, each with the kind of GPU."""
    for document in _documents(_NOTEBOOKS):
        ended = Counter(end for codes, end in _notebooks(document) if code in codes)
        yield from (Proof(code, end, number, *_place(document)) for end, number in sorted(ended.items()))


def _notebooks(document: Mapping[str, Any]) -> Iterator[tuple[frozenset[str], str]]:
    """The rules that each notebook showed, and its end."""
    for notebook in document.get("fixtures", {}).values():
        shown = (one["finding"] for one in notebook.get("findings", ()) if one["status"] in _SEEN)
        codes = frozenset(finding.partition("@")[0] for finding in shown)
        if notebook.get("verdict") in _SEEN and codes:
            yield codes, notebook["run"]["end"].partition(" ")[0]


@cache
def _proofs() -> tuple[Proof, ...]:
    seen: dict[_Place, dict[tuple[str, str], set[str]]] = defaultdict(lambda: defaultdict(set))
    for document in _documents():
        for key, name in _seen(document):
            seen[_place(document)][key].add(name)
    return tuple(proof for place, ended in seen.items() for proof in _of(place, ended))


def _documents(inner: str = "") -> Iterator[Mapping[str, Any]]:
    """The evidence in the wheel, or in the checkout around the package. A file that cannot be read proves nothing.

    ``inner`` names a folder of it.
    """
    shipped = _PACKAGE / "_evidence"
    folder = shipped if shipped.is_dir() else _PACKAGE.parent / "docs" / "evidence"
    for path in sorted((folder / inner).glob("*.json")):
        try:
            document = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(document, dict):
            yield document


def _place(document: Mapping[str, Any]) -> _Place:
    """The kind of GPU, the driver, and the versions of torch and of Python."""
    machine = document.get("machine", {})
    gpus = machine.get("gpus") or ["an unknown GPU"]
    return gpus[0], machine.get("driver", ""), document.get("versions", {}).get("torch", ""), machine.get("python", "")


def _seen(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    """The rule and the outcome of each finding that came true, with the fixture that showed it."""
    for name, fixture in document.get("fixtures", {}).items():
        if fixture.get("verdict") in _SEEN and fixture.get("observed") not in (None, "ok"):
            for code in sorted({item["finding"].partition("@")[0] for item in fixture.get("predicted", ())}):
                yield (code, fixture["observed"]), name


def _of(place: _Place, ended: Mapping[tuple[str, str], set[str]]) -> Iterator[Proof]:
    gpu, driver, torch, python = place
    for (code, outcome), names in sorted(ended.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1])):
        yield Proof(code, outcome, len(names), gpu, driver, torch, python)
