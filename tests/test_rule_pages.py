"""The examples of the rule pages are true: the first raises its code, the one to use instead does not."""

from __future__ import annotations

import re

import pytest

from cudalint import rules
from cudalint.finding import Finding, Severity
from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile

_SECTION = re.compile(r"^## (?P<title>.+?)\n(?P<body>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"```python\n(?P<code>.*?)```", re.DOTALL)
_WITHOUT = {"CUD900", "CUD901", "CUD902"}

CODES = [code for code in rules.codes() if code not in _WITHOUT]


def block(code: str, title: str) -> str:
    sections = {m["title"]: m["body"] for m in _SECTION.finditer(rules.page(code))}
    found = _BLOCK.search(sections[title])
    assert found is not None, f"{code}: no python block under {title}"
    return found["code"]


def check(text: str) -> tuple[Finding, ...]:
    return analyse([SourceFile("/example.py", text, text.encode())], Options()).findings


@pytest.mark.parametrize("code", CODES)
def test_the_example_raises_its_code(code: str) -> None:
    assert code in {f.code for f in check(block(code, "Example"))}


@pytest.mark.parametrize("code", CODES)
def test_the_example_to_use_instead_is_clean(code: str) -> None:
    findings = check(block(code, "Use instead"))
    assert code not in {f.code for f in findings}
    assert not [f for f in findings if f.severity is Severity.ERROR]
