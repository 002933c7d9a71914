"""Threads that run programs and answer through one queue, until all have, somebody interrupts, or one of them fails."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from cudalint.structs import Frozen
from cudalint.verify.runner import Runner

Asked = TypeVar("Asked")
Given = TypeVar("Given")
# Seconds to wait for what ended programs have to say.
_PATIENCE = 1.0


class _Answer(Frozen, Generic[Asked, Given]):
    """What a thread says when it ends."""

    asked: Asked
    given: Given | None
    error: BaseException | None = None


class Threads(Generic[Asked, Given]):
    """Work that was begun and has not been answered yet; who begins what, and when, is its user's to say."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._answers: queue.SimpleQueue[_Answer[Asked, Given]] = queue.SimpleQueue()
        self.running = 0

    def begin(self, asked: Asked, work: Callable[[], Given | None], name: str | None = None) -> None:
        """Do some work in a thread; what was asked comes back with its answer."""
        threading.Thread(target=self._work, args=(asked, work), name=name, daemon=True).start()
        self.running += 1

    def _work(self, asked: Asked, work: Callable[[], Given | None]) -> None:
        try:
            self._answers.put(_Answer(asked, work()))
        except BaseException as error:
            self._answers.put(_Answer(asked, None, error))

    def run(
        self,
        begin_more: Callable[[], None],
        take: Callable[[Asked, Given | None], None],
        keep: Callable[[Asked, Given], None],
    ) -> bool:
        """Begin what there is room for, and take answers as they come, until nothing runs; whether it was interrupted.

        Ctrl-C ends all programs; what they gave until then, or say at once, is kept without more ado.
        """
        try:
            begin_more()
            while self.running:
                answer = self._answers.get()
                self.running -= 1
                if answer.error is not None:
                    raise answer.error
                take(answer.asked, answer.given)
                begin_more()
        except KeyboardInterrupt:
            self._runner.stop()
            self._collect(keep)
            return True
        except BaseException:
            self._runner.stop()
            raise
        finally:
            self._runner.clear()
        return False

    def _collect(self, keep: Callable[[Asked, Given], None]) -> None:
        """After an interruption: wait a moment for the threads of the programs that were ended."""
        until = time.monotonic() + _PATIENCE
        for _ in range(self.running):
            try:
                answer = self._answers.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                return
            if answer.given is not None:
                keep(answer.asked, answer.given)
