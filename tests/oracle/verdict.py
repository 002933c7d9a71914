"""What happened against what was said: misbehaviour and error-level findings must come together."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from cudalint.finding import Finding, Severity
from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile

BAD = ("crash", "hang", "child-death", "wrong-device")

_FORK = frozenset({"CUD101", "CUD103", "CUD104", "CUD105", "CUD301", "CUD401", "CUD402", "CUD404"})
_PICKLE = frozenset({"CUD108", "CUD305"})  # which of two such values is met first, Python decides

# What a run prints, and the codes of which at least one then fits. The first pattern found decides.
FITTING: tuple[tuple[str, frozenset[str]], ...] = (
    (r"context has already been set", frozenset({"CUD105", "CUD106"})),
    (r"SemLock created in a \w+ context", frozenset({"CUD108"})),
    (
        r"Can't get local object|Can't pickle (local object|<function)|attribute lookup .* failed|it's not found as",
        frozenset({"CUD108", "CUD305"}),
    ),
    (r"[Cc]annot pickle|no default __reduce__|PicklingError", frozenset({"CUD305", "CUD108"})),
    (r"NameError: name '\w+' is not defined|Can't get attribute", frozenset({"CUD108"})),
    (r"module '__m\w+' has no attribute", frozenset({"CUD108"})),
    (r"daemonic processes are not allowed", frozenset({"CUD107"})),
    (r"invalid resource handle", frozenset({"CUD304", "CUD302", "CUD305"})),
    (r"cannot pin 'torch\.cuda", frozenset({"CUD403"})),
    (r"Expected a 'cuda' device type for generator", frozenset({"CUD404"})),
    (r"Cannot re-initialize CUDA in forked subprocess", _FORK),
    (r"initialization error|cudaErrorInitializationError|driver initialization failed", _FORK),
    (r"CUDA initialized before forking|CUDA_ERROR_NOT_INITIALIZED", _FORK),
    (r"worker device: cpu", _FORK),
)


@dataclass(frozen=True)
class Said:
    """One finding, as far as the oracle looks at it."""

    code: str
    error: bool
    row: int

    def __str__(self) -> str:
        return f"{self.code}{'' if self.error else ' (warning)'} row {self.row}"


def predict(text: str, path: str = "/oracle/program.py") -> list[Said]:
    """What cudalint says about a program, as the Python runs it that runs this."""
    version = sys.version_info[:2]
    found = analyse([SourceFile(path, text, text.encode())], Options((version, version))).findings
    return [_said(finding) for finding in found]


def _said(finding: Finding) -> Said:
    return Said(finding.code, finding.severity is Severity.ERROR, finding.span.start.row)


def outcome_of(outcome: str, output: str) -> str:
    """A program that ends well although its workers missed the GPU has used the wrong device."""
    return "wrong-device" if outcome == "ok" and "worker device: cpu" in output else outcome


def disagreement(outcome: str, output: str, said: Sequence[Said]) -> str | None:
    """Why observation and prediction do not fit; None where they do.

    A failure that the worker itself catches (a fallback to the CPU) is a warning by design: there any
    finding with a fitting code will do.
    """
    errors = {finding.code for finding in said if finding.error}
    if outcome not in BAD:
        return f"false alarm: {', '.join(sorted(errors))}" if errors else None
    if outcome == "wrong-device":
        errors |= {finding.code for finding in said}
    if not errors:
        soft = ", ".join(sorted({finding.code for finding in said}))
        return f"missed: {outcome}" + (f" (only warned: {soft})" if soft else "")
    fitting = fitting_codes(output)
    if fitting is not None and not errors & fitting:
        return f"wrong code: {outcome}, said {', '.join(sorted(errors))}"
    return None


def fitting_codes(output: str) -> frozenset[str] | None:
    """The codes that fit what a run printed; None where the output names no known failure."""
    for pattern, codes in FITTING:
        if re.search(pattern, output):
            return codes
    return None
