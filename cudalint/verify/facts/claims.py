"""What the models say of an expression: cudalint's own findings on the programs that the measurement amounts to."""

from __future__ import annotations

import re
from textwrap import indent

from cudalint.finding import Severity
from cudalint.project.analysis import Options, analyse
from cudalint.structs import Frozen
from cudalint.text.source import SourceFile
from cudalint.verify.facts.recorded import Expression, Framework

# About the statement that makes an object without using it, which an expression by itself is.
# Of who takes the CPU instead, in silence: nothing fails there.
_FALLS_BACK = "wrong-device"
_STRINGS = re.compile(r'"([^"]+)"')
_BESIDE_THE_POINT = frozenset({"CUD204"})


class Claim(Frozen):
    """The models' word on both questions."""

    poisons: bool
    in_child: bool


def claim(framework: Framework, expression: Expression) -> Claim:
    """What the models say."""
    setup = framework.setup
    if framework.name == "libraries" and not expression.text.startswith("import "):
        root = expression.text.partition(".")[0]
        setup += "\n".join(f"import {root}{part}" for part in ("", ".utils", ".cuda", ".numpy", ".fabric"))
    files = framework.prepare or ""
    if not any(name in files for name in _STRINGS.findall(expression.text)):
        files = ""
    shown = expression.text if expression.text.startswith("import ") else f"print({expression.text})"
    return Claim(
        poisons=_is_error(_program(setup, files, shown, framework.use)),
        in_child=_is_error(_program(setup, files, framework.inherit or framework.use, shown)),
    )


def _program(setup: str, files: str, parent: str, child: str) -> str:
    prepared = indent(f"{files.strip() or 'pass'}", "    ")
    start = "    multiprocessing.get_context('spawn').Process(target=prepare).start()\n" if files else ""
    return (
        f"import multiprocessing\nimport os\n{setup}\n\n\ndef prepare():\n{prepared}\n\n\ndef main():\n{start}"
        f"    {parent}\n    if os.fork() == 0:\n        {child}\n        os._exit(0)\n    os.wait()\n\n\n"
        "if __name__ == '__main__':\n    main()\n"
    )


def _is_error(text: str) -> bool:
    findings = analyse([SourceFile("/facts/program.py", text, text.encode())], Options()).findings
    errors = (one for one in findings if one.severity is Severity.ERROR and one.code not in _BESIDE_THE_POINT)
    return any(one.outcome != _FALLS_BACK for one in errors)
