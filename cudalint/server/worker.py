"""The process that analyses: it reads jobs from standard input and writes answers to what was standard output."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from collections.abc import Iterator
from typing import BinaryIO

from cudalint.config import ConfigError
from cudalint.discovery import NotFound
from cudalint.fixing.rounds import Changed, fix
from cudalint.found import Report
from cudalint.opening import Options, opened
from cudalint.project.seen import Seen
from cudalint.server.jobs import HEADER_BYTES, Answer, Check, Checked, Job, Look, Refused, Repair, Repaired, packed
from cudalint.text import notebook
from cudalint.text.decode import Refusal, decode


def serve(options: Options) -> None:
    """Do jobs until there are no more: when the server ends, so does its standard output, which is read here."""
    jobs, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever is printed by mistake must not get among the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while (job := _next(jobs)) is not None:
        try:
            answers.write(packed(_answered(job, options)))
            answers.flush()
        except BrokenPipeError:
            # The server has gone, and what is left of the answer would be written once more at the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), answers.fileno())
            return


def _next(jobs: BinaryIO) -> Job | None:
    header = jobs.read(HEADER_BYTES)
    if len(header) < HEADER_BYTES:
        return None
    job: Job = pickle.loads(jobs.read(int.from_bytes(header, "big")))
    return job


def _answered(job: Job, options: Options) -> Answer:
    try:
        match job:
            case Check():
                return _check(job, options)
            case Repair():
                return _repair(job, options)
            case Look():
                return _look(job, options)
    except ConfigError as error:
        return Refused(str(error))
    except NotFound as error:
        return Refused(f"no such file or directory: {error}")
    except Exception as error:  # the editor is told, and the next text may be another matter
        traceback.print_exc()
        return Refused(f"internal error: {type(error).__name__}: {error}")


def _check(job: Check, options: Options) -> Checked:
    ready = opened(job.paths, options, unsaved=job.texts)
    root = ready.config.root
    is_whole = root is not None and not job.first
    paths = job.paths if is_whole else _open_ones(job)
    if root is not None and job.first:
        # What is named would be read also where the project leaves it out.
        selected = frozenset(ready.session.selected(job.paths))
        paths = tuple(path for path in paths if path in selected)
    if not paths:
        return Checked(Report(), root, frozenset() if root is not None else None)
    report = ready.session.check(paths, repair=job.repair)
    ready.cache.close()
    return Checked(report, root, None if is_whole or root is None else frozenset(paths))


def _open_ones(job: Check) -> tuple[str, ...]:
    folders = tuple(path.rstrip(os.sep) + os.sep for path in job.paths)
    return tuple(path for path in job.texts if path.startswith(folders) or path in job.paths)


def _repair(job: Repair, options: Options) -> Repaired:
    fixed = fix(opened((job.path,), options, unsaved=job.texts).session, (job.path,))
    own = (change for change in fixed.changes if change.path == job.path)
    return Repaired({i: pair for change in own for i, pair in _texts(change)})


def _texts(change: Changed) -> Iterator[tuple[int, tuple[str, str]]]:
    if change.path.endswith(notebook.SUFFIX):
        old, new = notebook.read(change.path, change.before), notebook.read(change.path, change.after)
        if not isinstance(old, Refusal) and not isinstance(new, Refusal):
            for cell, made in zip(old.cells, new.cells, strict=True):
                if cell.text != made.text:
                    yield cell.number - 1, (cell.text, made.text)
        return
    before, after = decode(change.path, change.before), decode(change.path, change.after)
    if not isinstance(before, Refusal) and not isinstance(after, Refusal):
        yield 0, (before.text, after.text)


def _look(job: Look, options: Options) -> Seen:
    return opened((job.path,), options, unsaved=job.texts).session.seen(job.path)
