"""Keeps from the parser what would bring it down: files too large, nested too deep, or chained too long.

The parser recurses in native code and ends the whole process on 5,000 chained calls or 1,000 nested
lambdas, so a file is measured before it is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudalint.text.decode import Refusal
from cudalint.text.scan import Kind, lexemes

MAX_BRACKETS = 200
MAX_INDENTS = 100
MAX_CHAIN = 2_000

_INDENT = re.compile(r"^([ \t\f]+)(?=[^\s#])", re.MULTILINE)
_DEEP_INDENT = re.compile(rf"^[ \t\f]{{{MAX_INDENTS}}}", re.MULTILINE)
_ELIF = re.compile(r"^[ \t]*elif\b", re.MULTILINE)
# Whatever may lengthen a chain; counted in strings and comments too, so that the count is never too low.
_LINKS = (*"\"'.+-*/%@&|^~<>!=([{", "and", "or", "not", "if", "in", "is", "lambda", "await")
_BRACKET = re.compile(r"[(\[{]|([)\]}])")
# A line that begins with one of these begins a statement, so no expression goes on across it.
_STATEMENT = re.compile(
    r"\n[ \t]*(?:assert|class|def|del|except|finally|from|global|import|pass|raise|return|try|while|with)\b"
)


def too_large(size: int, most: int) -> Refusal | None:
    """Why a text of so many bytes is not looked at; ``None`` where it is."""
    return Refusal(f"it has {size:,} bytes, more than {most:,}") if size > most else None


def refuse(text: str) -> Refusal | None:
    """Why ``text`` must not be parsed; ``None`` where it may."""
    if _indents_exceed(text):
        return Refusal(f"its blocks are nested more than {MAX_INDENTS} deep")
    if len(_ELIF.findall(text)) > MAX_CHAIN:
        return Refusal(f"it has more than {MAX_CHAIN:,} elif branches")
    for start, end in _statements(text):
        if _could_exceed(text, start, end) and (refusal := _refuse_expressions(text[start:end])) is not None:
            return refusal
    return None


def _could_exceed(text: str, start: int, end: int) -> bool:
    """Whether a stretch is long enough, or has the brackets, to exceed a limit; most are told apart by length alone."""
    if end - start <= MAX_BRACKETS:
        return False
    if sum(text.count(opener, start, end) for opener in "([{") > MAX_BRACKETS:
        return True
    return end - start > MAX_CHAIN and sum(text.count(link, start, end) for link in _LINKS) > MAX_CHAIN


def _indents_exceed(text: str) -> bool:
    """Whether the distinct indentations of one block stack exceed the limit."""
    # Each block stands at least one character deeper than the one around it; most texts are told apart at once.
    if not ("\t" in text or "\f" in text or " " * MAX_INDENTS in text) or _DEEP_INDENT.search(text) is None:
        return False
    stack: list[int] = []
    for match in _INDENT.finditer(text):
        width = len(match.group(1).expandtabs())
        while stack and stack[-1] >= width:
            stack.pop()
        stack.append(width)
        if len(stack) > MAX_INDENTS:
            return True
    return False


def _statements(text: str) -> Iterator[tuple[int, int]]:
    """Stretches of the text that no expression crosses."""
    start = seen = 0
    within_string = False
    for match in _STATEMENT.finditer(text):
        end = match.start()
        quotes = text.count('"""', seen, end) + text.count("'''", seen, end)
        within_string ^= quotes % 2 == 1
        seen = end
        if not within_string:
            yield start, end
            start = end
    yield start, len(text)


def _refuse_expressions(text: str) -> Refusal | None:
    """Measure every expression: how deep its brackets nest, how many links it chains with those that it stands in."""
    levels = [0]
    outside = 0  # the links of all levels but the innermost
    for lexeme in lexemes(text):
        match lexeme.kind:
            case Kind.OPENER:
                levels[-1] += 1
                outside += levels[-1]
                levels.append(0)
            case Kind.CLOSER:
                if len(levels) > 1:
                    levels.pop()
                    outside -= levels[-1]
            case Kind.SEPARATOR:
                levels[-1] = 0
            case Kind.NEWLINE:
                if len(levels) == 1:
                    levels[0] = 0
            case Kind.OPERATOR:
                levels[-1] += 1
            case Kind.STRING:
                levels[-1] += 1
                if lexeme.formatted:
                    levels[-1] += _links(text, lexeme.start, lexeme.end)
                    if len(levels) + _depth(text, lexeme.start, lexeme.end) > MAX_BRACKETS:
                        return Refusal(f"its brackets are nested more than {MAX_BRACKETS} deep")
            case Kind.COMMENT | Kind.CONTINUATION:
                pass
        if len(levels) > MAX_BRACKETS:
            return Refusal(f"its brackets are nested more than {MAX_BRACKETS} deep")
        if outside + levels[-1] > MAX_CHAIN:
            return Refusal(f"one of its expressions chains more than {MAX_CHAIN:,} operations")
    return None


def _depth(text: str, start: int, end: int) -> int:
    """How deep brackets nest within a formatted string."""
    depth = deepest = 0
    for match in _BRACKET.finditer(text, start, end):
        depth = max(0, depth - 1) if match.group(1) else depth + 1
        deepest = max(deepest, depth)
    return deepest


def _links(text: str, start: int, end: int) -> int:
    """How many operations the replacement fields of a formatted string could chain; none without a field."""
    if text.find("{", start, end) < 0:
        return 0
    return sum(text.count(character, start, end) for character in ".+-*/%@&|^~<(")
