"""The reviewed list: what cudalint says about the pinned packages, and whether that is so."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import tomli

HERE = Path(__file__).parent

# Not about CUDA: a file that cannot be parsed is no prediction, and an internal error is never reviewed.
SYNTAX_ERROR = "CUD901"
INTERNAL_ERROR = "CUD900"


class Verdict(Enum):
    """What a reader of the package's source says about a finding, the worst last."""

    RIGHT = "right"
    ARGUABLE = "arguable"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One finding, by the text of its line: rows move from release to release, and so does cudalint.

    ``told`` is its message and its steps, for whoever reviews it.
    """

    package: str
    version: str
    file: str
    code: str
    line: str
    severity: str
    told: tuple[str, ...] = field(default=(), compare=False)

    def as_stub(self) -> str:
        """The entry for the reviewed list, without its verdict and reason, behind what cudalint says."""
        keys = ("package", "version", "file", "code", "line", "severity")
        lines = [f"{key} = {_toml_string(getattr(self, key))}" for key in keys]
        told = [f"# {line}" for line in self.told]
        return "\n".join([*told, "[[finding]]", *lines, 'verdict = ""', 'reason = ""', ""])


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The list: every finding as often as it occurs, and the verdict on it: the worst where one text is several."""

    count: Counter[Finding]
    verdicts: dict[Finding, Verdict]


@dataclass(frozen=True, slots=True)
class Difference:
    """What the list does not say, and what it says that is no longer so."""

    unreviewed: list[Finding]
    vanished: list[Finding]


class BadList(Exception):
    """The reviewed list is not as it must be; the text says where."""


def read(path: Path = HERE / "reviewed.toml") -> Reviewed:
    """Read the list; an entry without a verdict or a reason is no review."""
    count: Counter[Finding] = Counter()
    verdicts: dict[Finding, Verdict] = {}
    for number, entry in enumerate(tomli.loads(path.read_text(encoding="utf-8")).get("finding", []), start=1):
        verdict, reason = entry.pop("verdict", ""), entry.pop("reason", "")
        finding = Finding(**entry)
        if verdict not in {known.value for known in Verdict} or not reason.strip():
            raise BadList(f"entry {number} ({finding.package}: {finding.file}) lacks a verdict or a reason")
        verdicts[finding] = max(Verdict(verdict), verdicts.get(finding, Verdict.RIGHT), key=list(Verdict).index)
        count[finding] += 1
    return Reviewed(count, verdicts)


def compare(found: Counter[Finding], reviewed: Reviewed, packages: Iterable[str]) -> Difference:
    """Compare the findings of these packages (``name-version``) with what the list says about them."""
    names = frozenset(packages)
    expected = Counter({f: n for f, n in reviewed.count.items() if f"{f.package}-{f.version}" in names})
    return Difference(sorted((found - expected).elements()), sorted((expected - found).elements()))


def of_json(package: str, version: str, text: str, folder: Path) -> tuple[Finding, ...]:
    """The findings in cudalint's json report on a package that lies in ``folder``."""
    lines: dict[tuple[str, int | None], list[str]] = {}
    findings = []
    for entry in json.loads(text):
        path = Path(entry["filename"])
        file = path.relative_to(folder).as_posix()
        place = file, entry["cell"]
        if place not in lines:
            lines[place] = _lines(path, entry["cell"])
        row = entry["location"]["row"]
        line = lines[place][row - 1].strip() if row <= len(lines[place]) else ""
        if entry["code"] == SYNTAX_ERROR:
            line = ""
        told = tuple(_told(entry, folder))
        findings.append(Finding(package, version, file, entry["code"], line, entry["severity"], told))
    return tuple(findings)


def _told(entry: dict[str, Any], folder: Path) -> Iterator[str]:
    """The message of a finding and its steps, each on one line."""
    condition = f" ({entry['condition']})" if entry.get("condition") else ""
    yield f"{entry['message']}{condition}".replace("\n", " ")
    for step in entry["trace"]:
        place = f"{Path(step['filename']).relative_to(folder).as_posix()}:{step['location']['row']}"
        yield f"  {step['kind']}, {step['process']}: {place} {step['message']}".replace("\n", " ")


def _lines(path: Path, cell: int | None) -> list[str]:
    """The lines of a file, or of a cell of a notebook."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if cell is not None:
        text = "".join(json.loads(text)["cells"][cell - 1]["source"])
    return text.splitlines()


def is_prediction(finding: Finding, severity: str) -> bool:
    """Whether a finding of this severity says what happens on a GPU machine."""
    return finding.severity == severity and finding.code not in (SYNTAX_ERROR, INTERNAL_ERROR)


def wilson(good: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share, after Wilson: it is honest for few and for all."""
    if total == 0:
        return 0.0, 1.0
    z = 1.96
    share = good / total
    middle = share + z * z / (2 * total)
    width = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    return (middle - width) / (1 + z * z / total), (middle + width) / (1 + z * z / total)


def _toml_string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
