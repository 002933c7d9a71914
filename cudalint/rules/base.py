"""What a rule is: a code, a name, the worst severity hardware showed, and the outcomes it speaks about."""

from __future__ import annotations

from dataclasses import dataclass

from cudalint.finding import Severity


@dataclass(frozen=True, slots=True)
class Rule:
    """The record of one rule; the docstring of its module is its page.

    ``severity`` is the worst one; a single finding can be softer.
    ``summary`` is one sentence in lower case without a full stop, as in a table.
    """

    code: str
    name: str
    severity: Severity
    summary: str
