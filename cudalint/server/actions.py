"""What can be done about findings: repairs, by how far they can be trusted, and comments that silence them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from lsprotocol import types

from cudalint.finding import Applicability, Finding, Position, Span
from cudalint.policy.suppression import is_silenceable
from cudalint.server.diagnostics import Found, diagnostic
from cudalint.server.positions import Places
from cudalint.text.lines import Rows
from cudalint.text.noqa import with_code

FIX_ALL = "source.fixAll.cudalint"

# The version of a document as it is now; None where it is not open.
Versions = Callable[[str], int | None]


def wanted(kind: str, only: Iterable[str] | None) -> bool:
    """Whether an editor asks for actions of a kind, or of one that holds it."""
    return only is None or any(kind == asked or kind.startswith(f"{asked}.") or asked == "" for asked in only)


def quick_fixes(found: Found, findings: Iterable[Finding], versions: Versions) -> Iterator[types.CodeAction]:
    """The repairs of findings, the safe ones first, and then the comments that silence them."""
    findings = tuple(findings)
    for level in (Applicability.SAFE, Applicability.UNSAFE):
        for finding in findings:
            if finding.fix is not None and finding.fix.applicability is level:
                yield from _repair(found, finding, versions)
    for finding in findings:
        yield from _silence(found, finding, versions)


def _repair(found: Found, finding: Finding, versions: Versions) -> Iterator[types.CodeAction]:
    fix = finding.fix
    if fix is None or not fix.edits or not all(found.can_edit(edit.span) for edit in fix.edits):
        return
    edits: dict[str, list[types.TextEdit]] = {}
    for edit in fix.edits:
        place = found.location(edit.span)
        edits.setdefault(place.uri, []).append(types.TextEdit(place.range, edit.content))
    change = workspace_edit(found, edits, versions)
    if change is None:
        return
    is_safe = fix.applicability is Applicability.SAFE
    yield types.CodeAction(
        title=f"{finding.code}: {fix.message}{'' if is_safe else f' (not safe: {fix.reason})'}",
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic(found, finding)],
        is_preferred=is_safe,
        edit=change,
    )


def _silence(found: Found, finding: Finding, versions: Versions) -> Iterator[types.CodeAction]:
    text = found.report.texts.get(finding.span.filename)
    if text is None or not is_silenceable(finding.code):
        return
    first, last = finding.noqa_rows or (finding.span.start.row, finding.span.start.row)
    # flake8 looks at the row of the finding only, so that is the row where a comment serves both.
    rows = (finding.span.start.row, *range(last, first - 1, -1))
    insertion = with_code(text, rows, finding.code)
    if insertion is None:
        return
    offset, comment = insertion
    place = Position(*Rows(text).place(offset))
    span = Span(finding.span.filename, place, place)
    if not found.can_edit(span):
        return
    at = found.location(span)
    change = workspace_edit(found, {at.uri: [types.TextEdit(at.range, comment)]}, versions)
    if change is not None:
        yield types.CodeAction(
            title=f"{finding.code}: ignore here (noqa)",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[diagnostic(found, finding)],
            edit=change,
        )


def workspace_edit(
    found: Found, edits: Mapping[str, list[types.TextEdit]], versions: Versions
) -> types.WorkspaceEdit | None:
    """Edits by document as the editor makes them; None where one is not any more what they were made for."""
    changes: list[types.TextDocumentEdit] = []
    for uri, made in edits.items():
        version = versions(uri)
        if version != found.version(uri):
            return None
        document = types.OptionalVersionedTextDocumentIdentifier(uri, version)
        changes.append(types.TextDocumentEdit(document, list(made)))
    return types.WorkspaceEdit(document_changes=list(changes))


def fix_all(uri: str, edit: types.WorkspaceEdit | None = None) -> types.CodeAction:
    """All safe repairs in a document; what they are is looked for when an editor asks for it."""
    return types.CodeAction(title="cudalint: make all safe repairs", kind=FIX_ALL, data={"uri": uri}, edit=edit)


def text_edit(before: str, after: str, encoding: types.PositionEncodingKind) -> types.TextEdit:
    """One edit that makes a text of another: what they share at both ends stays."""
    head = _shared(before, after)
    if before[head - 1 : head] == "\r":  # no place lies between the two characters of a row's end
        head -= 1
    tail = _shared(before[head:][::-1], after[head:][::-1])
    if tail and before[len(before) - tail] == "\n":
        tail -= 1
    rows = Rows(before)
    ends = (Position(*rows.place(offset)) for offset in (head, len(before) - tail))
    return types.TextEdit(Places(before, encoding).range(Span("", *ends)), after[head : len(after) - tail])


def _shared(left: str, right: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((i for i, (one, other) in pairs if one != other), min(len(left), len(right)))


def without_versions(edit: types.WorkspaceEdit) -> types.WorkspaceEdit:
    """The same for an editor that knows documents only by their names."""
    changes: dict[str, list[types.TextEdit]] = {}
    for change in edit.document_changes or ():
        if isinstance(change, types.TextDocumentEdit):
            made = (one for one in change.edits if isinstance(one, types.TextEdit))
            changes.setdefault(change.text_document.uri, []).extend(made)
    return types.WorkspaceEdit(changes=dict(changes))
