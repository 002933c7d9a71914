"""JUnit XML, as CI services read it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable

from cudalint.structs import Frozen

_UNPRINTABLE = re.compile(r"[^\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Case(Frozen):
    """One test case: passed unless it says why it failed or was skipped."""

    name: str
    group: str = "cudalint"
    seconds: float = 0.0
    failure: str | None = None
    skipped: str | None = None
    output: str = ""


def render(title: str, cases: Iterable[Case]) -> str:
    """One suite with all cases."""
    listed = list(cases)
    suite = ET.Element(
        "testsuite",
        name=_printable(title),
        tests=str(len(listed)),
        failures=str(sum(case.failure is not None for case in listed)),
        skipped=str(sum(case.skipped is not None for case in listed)),
        time=f"{sum(case.seconds for case in listed):.1f}",
    )
    for case in listed:
        suite.append(_element(case))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{ET.tostring(root, encoding='unicode')}\n"


def _element(case: Case) -> ET.Element:
    element = ET.Element(
        "testcase", classname=_printable(case.group), name=_printable(case.name), time=f"{case.seconds:.1f}"
    )
    for tag, text in (("failure", case.failure), ("skipped", case.skipped)):
        if text is not None:
            child = ET.SubElement(element, tag, message=_printable(text.partition("\n")[0]))
            child.text = _printable(text)
    if case.output:
        ET.SubElement(element, "system-out").text = _printable(case.output)
    return element


def _printable(text: str) -> str:
    """Without what XML cannot hold."""
    return _UNPRINTABLE.sub("?", text)
