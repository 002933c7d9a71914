"""The output formats, on findings made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_projects import findings

from cudalint.config import Config, Versions
from cudalint.finding import Applicability, Edit, Finding, Fix, Position, Severity, Span
from cudalint.found import Effort, Report
from cudalint.report import statistics
from cudalint.report.render import OutputFormat, Style, render
from cudalint.session import Session
from cudalint.structs import replace

TRAIN = "\n" * 10 + "    torch.zeros(1, device='cuda')\n\twith é, Pool(2) as pool:\n        pass\n"
LIB = "def work(n):\n    return torch.ones(n, device='cuda')\n"
TEXTS = {"/project/train.py": TRAIN, "/project/lib.py": LIB}

FULL = """\
error[CUD101]: `work` uses CUDA in a worker that was forked after its parent initialised CUDA
   --> train.py:12:10 (cuda-in-forked-worker)
   |
12 |     with é, Pool(2) as pool:
   |             ^^^^^^^
   ::: train.py:11:5 (cause, in main)
   |
11 |     torch.zeros(1, device='cuda')
   |     ----------------------------- initialises CUDA
   ::: train.py:12:10 (launch, in main) forks two workers
   ::: lib.py:2:12 (effect, in worker)
   |
 2 |     return torch.ones(n, device='cuda')
   |            ---------------------------- uses CUDA
   |
   = on hardware: the program crashes (NVIDIA H200, torch 2.11)
   = condition: on Linux before Python 3.14
   = fix, with --unsafe-fixes: start the workers by spawn (not safe: it may print its header twice)
   = help: cudalint rule CUD101

Found 1 error in 1 file.
You can have 1 repair with --fix --unsafe-fixes (--diff shows what).
"""


def text(report: Report, output_format: OutputFormat, *, colour: bool = False) -> str:
    return render(report, output_format, Style(colour, "/project"))


@pytest.fixture
def report(finding: Finding) -> Report:
    return Report(findings=(finding,), texts=TEXTS)


def test_full_shows_the_path_leg_by_leg(report: Report) -> None:
    assert text(report, OutputFormat.FULL) == FULL


def test_several_reasons_against_a_repair_stand_one_below_the_other(finding: Finding) -> None:
    assert finding.fix is not None
    several = replace(finding, fix=replace(finding.fix, reason="it may print its header twice; it reads `SCALE`"))
    shown = text(Report(findings=(several,), texts=TEXTS), OutputFormat.FULL)
    assert "start the workers by spawn (not safe, see below)\n" in shown
    assert "   = not safe: it may print its header twice\n   = not safe: it reads `SCALE`\n" in shown


@pytest.mark.parametrize(
    ("condition", "versions", "quoted"),
    [
        (None, ((3, 10), (3, 13)), True),
        ("before Python 3.14", ((3, 10), (3, 14)), True),
        ("from Python 3.14", ((3, 10), (3, 14)), False),
        ("before Python 3.12", ((3, 10), (3, 14)), False),
        (None, ((3, 14), (3, 14)), False),
    ],
)
def test_evidence_is_quoted_only_of_versions_that_it_was_taken_with(
    finding: Finding, condition: str | None, versions: Versions, quoted: bool
) -> None:
    one = Report(findings=(replace(finding, condition=condition),), target_versions=versions)
    shown = text(one, OutputFormat.FULL)
    assert ("= on hardware: the program crashes (NVIDIA" in shown) is quoted
    assert ("= expected: the program crashes\n" in shown) is not quoted


def test_what_the_program_handles_is_not_said_to_end_it(finding: Finding) -> None:
    shown = text(Report(findings=(replace(finding, caught=True),)), OutputFormat.FULL)
    assert "= expected: it fails there, and the program handles the exception\n" in shown
    told = text(Report(findings=(replace(finding, caught=True, told=True),)), OutputFormat.FULL)
    assert "= expected: it fails there, and the program is told of the exception\n" in told
    assert "the program crashes" not in shown


@pytest.mark.parametrize(
    ("ending", "caught"),
    [
        ("return 0", True),
        ("sys.exit()", True),
        ("sys.exit(0)", True),
        ("os._exit(0)", True),
        ("sys.exit(1)", False),
        ('sys.exit("no GPU here")', False),
        ("os._exit(3)", False),
        ("raise", False),
    ],
)
def test_a_handler_that_ends_the_process_as_a_failure_handles_nothing(ending: str, caught: bool) -> None:
    found = findings({"main.py": HANDLED.format(ending=ending)})
    assert [(one.code, one.caught) for one in found] == [("CUD101", caught)]


HANDLED = """\
import multiprocessing as mp
import os
import sys
import torch
def work(n):
    try:
        return torch.ones(n, device="cuda").sum().item()
    except Exception:
        print("it failed")
        {ending}
if __name__ == "__main__":
    torch.ones(1).cuda()
    process = mp.get_context("fork").Process(target=work, args=(1,))
    process.start()
"""


@pytest.mark.parametrize(("program", "caught"), [("broken_cpu_fallback", True), ("broken_billiard_pool", False)])
def test_a_finding_knows_whether_the_program_handles_it(program: str, caught: bool) -> None:
    path = Path(__file__).resolve().parent.parent / "fixtures" / "CUD101" / f"{program}.py"
    found = Session(Config(exclude=())).check((str(path),)).findings
    assert [one.caught for one in found] == [caught]


def test_colour_only_adds_escapes(report: Report) -> None:
    import re

    coloured = text(report, OutputFormat.FULL, colour=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == FULL


def test_full_survives_places_that_the_text_does_not_have(finding: Finding) -> None:
    assert "error[CUD101]" in text(Report(findings=(finding,)), OutputFormat.FULL)
    assert "error[CUD101]" in text(Report(findings=(finding,), texts={"/project/train.py": ""}), OutputFormat.FULL)


def test_control_characters_and_long_lines_do_not_reach_the_terminal(finding: Finding) -> None:
    row = "\x1b]0;x\x07" + "a" * 5000
    report = Report(findings=(finding,), texts={"/project/train.py": "\n" * 11 + row})
    shown = text(report, OutputFormat.FULL)
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) < 250


def test_concise(report: Report) -> None:
    assert text(report, OutputFormat.CONCISE).splitlines() == [
        "train.py:12:10: CUD101 `work` uses CUDA in a worker that was forked after its parent initialised CUDA"
        " (on Linux before Python 3.14)",
        "Found 1 error in 1 file.",
        "You can have 1 repair with --fix --unsafe-fixes (--diff shows what).",
    ]


def test_concise_marks_what_the_options_would_repair(report: Report) -> None:
    style = Style(colour=False, directory="/project", unsafe_fixes=True)
    lines = render(report, OutputFormat.CONCISE, style).splitlines()
    assert lines[0].startswith("train.py:12:10: CUD101 [*] `work` uses CUDA")
    assert lines[-1] == "1 repair can be made with --fix --unsafe-fixes."


def test_the_summary_tells_safe_repairs_from_others_and_what_was_made(finding: Finding) -> None:
    safe = replace(finding, fix=Fix(Applicability.SAFE, "do", ()))
    shown = replace(finding, fix=Fix(Applicability.DISPLAY, "do", ()))
    style = Style(colour=False, directory="/project", fixed=2)
    lines = render(Report(findings=(finding, safe, shown)), OutputFormat.CONCISE, style).splitlines()
    assert lines[-2:] == [
        "2 repairs made. Found 3 errors in 1 file.",
        "You can have 1 repair with --fix and 1 repair with --fix --unsafe-fixes (--diff shows what).",
    ]


def test_summary_counts_by_severity(finding: Finding) -> None:
    warning = replace(finding, severity=Severity.WARNING)
    two = Report(findings=(finding, warning, warning))
    assert text(two, OutputFormat.CONCISE).splitlines()[-2] == "Found 1 error and 2 warnings in 1 file."
    for output_format in (OutputFormat.FULL, OutputFormat.CONCISE):
        assert text(Report(effort=Effort(files_read=1)), output_format) == "All checks passed!\n"
        assert text(Report(), output_format) == "Nothing was checked.\n"


def test_json_has_the_fixed_fields(finding: Finding) -> None:
    edit = Edit(Span("/project/train.py", Position(1, 1), Position(1, 3)), "x")
    fixed = replace(finding, fix=Fix(Applicability.SAFE, "do", (edit,)))
    (entry,) = json.loads(text(Report(findings=(fixed,)), OutputFormat.JSON))
    assert entry == {
        "code": "CUD101",
        "name": "cuda-in-forked-worker",
        "severity": "error",
        "message": finding.message,
        "filename": "/project/train.py",
        "location": {"row": 12, "column": 10},
        "end_location": {"row": 12, "column": 17},
        "fix": {
            "applicability": "safe",
            "message": "do",
            "reason": None,
            "edits": [
                {
                    "filename": "/project/train.py",
                    "content": "x",
                    "location": {"row": 1, "column": 1},
                    "end_location": {"row": 1, "column": 3},
                }
            ],
        },
        "trace": [
            {
                "filename": step.span.filename,
                "location": {"row": step.span.start.row, "column": step.span.start.column},
                "end_location": {"row": step.span.end.row, "column": step.span.end.column},
                "message": step.message,
                "kind": step.kind.value,
                "process": step.process,
            }
            for step in finding.trace
        ],
        "outcome": "crash",
        "condition": "on Linux before Python 3.14",
        "cell": None,
        "fingerprint": entry["fingerprint"],
        "noqa_row": 12,
        "url": f"https://cudalint.github.io/cudalint/rules/{finding.code}/",
    }


def test_json_of_nothing_is_an_empty_list() -> None:
    assert text(Report(), OutputFormat.JSON) == "[]\n"


def test_github_escapes_what_would_end_a_command(finding: Finding) -> None:
    odd = replace(finding, message="50% of\nit", span=replace(finding.span, filename="/project/a,b:c.py"))
    assert text(Report(findings=(odd,)), OutputFormat.GITHUB) == (
        "::error title=cudalint (CUD101),file=a%2Cb%3Ac.py,line=12,col=10,endLine=12,endColumn=17"
        "::a,b:c.py:12:10: CUD101 50%25 of%0Ait (on Linux before Python 3.14)\n"
    )


def test_sarif_carries_rules_results_and_the_path(report: Report) -> None:
    (run,) = json.loads(text(report, OutputFormat.SARIF))["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["CUD101"]
    (result,) = run["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "train.py"}
    assert len(result["codeFlows"][0]["threadFlows"][0]["locations"]) == 3


def test_statistics(finding: Finding) -> None:
    other = replace(finding, code="CUD301", name="cuda-value-to-forked-worker")
    report = Report(findings=(other, finding, other))
    assert statistics.as_text(report).split() == ["2", other.code, other.name, "1", finding.code, finding.name]
    entry = {"code": other.code, "name": other.name, "count": 2, "notes": 0}
    assert json.loads(statistics.as_json(report))[0] == entry


def test_statistics_tell_notes(finding: Finding) -> None:
    note = replace(finding, severity=Severity.NOTE)
    other = replace(note, code="CUD501", name="init-before-set-device")
    report = Report(findings=(finding, note, note, other))
    assert statistics.as_text(report).splitlines() == [
        "3\tCUD101\tcuda-in-forked-worker\t2 of them notes",
        "1\tCUD501\tinit-before-set-device\tnotes",
    ]
    assert [row["notes"] for row in json.loads(statistics.as_json(report))] == [2, 1]


def test_every_format_tells_a_note(finding: Finding) -> None:
    note = replace(finding, severity=Severity.NOTE)
    one = Report(findings=(note,))
    assert text(one, OutputFormat.FULL).startswith("note[CUD101]: ")
    said = f"train.py:12:10: CUD101 note: {note.message} ({note.condition})\n"
    assert text(one, OutputFormat.CONCISE).startswith(said)
    assert [entry["severity"] for entry in json.loads(text(one, OutputFormat.JSON))] == ["note"]
    assert text(one, OutputFormat.GITHUB).startswith("::notice title=")
    (run,) = json.loads(text(one, OutputFormat.SARIF))["runs"]
    assert [result["level"] for result in run["results"]] == ["note"]
    every = Report(findings=(finding, note, note, replace(finding, severity=Severity.WARNING)))
    assert text(every, OutputFormat.CONCISE).splitlines()[-2] == "Found 1 error, 1 warning and 2 notes in 1 file."
    assert text(one, OutputFormat.CONCISE).splitlines()[-2] == "Found 1 note in 1 file."
