"""What searching the bytes of a file found is compared with what an edit of it makes of that."""

from __future__ import annotations

import inspect

from cudalint.models import library as models
from cudalint.project.file_facts import FileFacts
from cudalint.project.markers import Lexicon

TEXT = b"from . import a, b\nimport torch\n\n\ndef run():\n    return torch.ones(1)\n"


def _facts(text: bytes) -> FileFacts:
    found = FileFacts(text, Lexicon.of(models.load().vocabulary))
    for name, _ in inspect.getmembers(FileFacts, lambda member: isinstance(member, property)):
        getattr(found, name)
    return found


def test_all_that_is_found_out_about_a_file_is_found_out_about_it_again() -> None:
    assert _facts(TEXT + b"# a remark\n").agree_with(_facts(TEXT).known)


def test_a_file_that_imports_something_else_does_not_agree() -> None:
    assert not _facts(TEXT.replace(b"a, b", b"a, c")).agree_with(_facts(TEXT).known)
