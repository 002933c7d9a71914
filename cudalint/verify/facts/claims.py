"""What the models say of an expression: cudalint's own findings on the programs that the measurement amounts to."""

from __future__ import annotations

from dataclasses import dataclass

from cudalint.finding import Severity
from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile
from cudalint.verify.facts.recorded import Expression, Framework

# About the statement that makes an object without using it, which an expression by itself is.
_BESIDE_THE_POINT = frozenset({"CUD204"})


@dataclass(frozen=True, slots=True)
class Claim:
    """The models' word on both questions."""

    poisons: bool
    in_child: bool


def claim(framework: Framework, expression: Expression) -> Claim:
    """What the models say."""
    setup = framework.setup
    if framework.name == "libraries" and not expression.text.startswith("import "):
        root = expression.text.partition(".")[0]
        setup += "\n".join(f"import {root}{part}" for part in ("", ".utils", ".cuda", ".numpy", ".fabric"))
    return Claim(
        poisons=_is_error(_program(setup, expression.text, framework.use)),
        in_child=_is_error(_program(setup, framework.inherit or framework.use, expression.text)),
    )


def _program(setup: str, parent: str, child: str) -> str:
    return (
        f"import os\n{setup}\n\n\ndef main():\n    {parent}\n    if os.fork() == 0:\n        {child}\n"
        "        os._exit(0)\n    os.wait()\n\n\nif __name__ == '__main__':\n    main()\n"
    )


def _is_error(text: str) -> bool:
    findings = analyse([SourceFile("/facts/program.py", text, text.encode())], Options()).findings
    return any(one.severity is Severity.ERROR and one.code not in _BESIDE_THE_POINT for one in findings)
