"""The other end of the worker: one job at a time, and an end to those whose answer is no longer wanted."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence

from cudalint.server.jobs import HEADER_BYTES, Answer, Job, Refused, packed

# What is about to end is waited for, as long as a new process would take to begin.
PATIENCE_SECONDS = 1.0


class Analyst:
    """A process that is started when there is a job, and started again after it was ended.

    It is a fresh process: this one has threads that read and write, and what a fork makes of those is what cudalint
    warns of.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self._process: Process | None = None
        self._turn = asyncio.Lock()

    async def ask(self, job: Job) -> Answer:
        """The answer to a job, after those that were asked before. Who cancels this ends the work on it."""
        async with self._turn:
            process = await self._running()
            answer = asyncio.ensure_future(_exchange(process, job))
            try:
                return await asyncio.shield(answer)
            except asyncio.CancelledError:
                await asyncio.wait({answer}, timeout=PATIENCE_SECONDS)
                raise
            except (OSError, asyncio.IncompleteReadError):
                return Refused(f"the analysis ended unexpectedly (exit code {await self._ended(process)})")
            finally:
                if not answer.done():
                    # Else the next one would be given its answer.
                    self._kill(process)
                    answer.cancel()
                elif not answer.cancelled():
                    # Who no longer waits does not want to hear of an end either.
                    answer.exception()

    async def _ended(self, process: Process) -> int:
        """The exit code of a process that closed its pipes: its own, if it is about to end."""
        self._process = None
        try:
            return await asyncio.wait_for(process.wait(), PATIENCE_SECONDS)
        except asyncio.TimeoutError:
            self._kill(process)
            return await process.wait()

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            self._kill(process)
            await process.wait()

    def abandon(self) -> None:
        """End the process without waiting for that."""
        if self._process is not None and self._process.returncode is None:
            self._kill(self._process)

    async def _running(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(*self._command, stdin=PIPE, stdout=PIPE)
        return self._process

    def _kill(self, process: Process) -> None:
        self._process = None
        with contextlib.suppress(ProcessLookupError):
            process.kill()


async def _exchange(process: Process, job: Job) -> Answer:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(packed(job))
    await process.stdin.drain()
    header = await process.stdout.readexactly(HEADER_BYTES)
    answer: Answer = pickle.loads(await process.stdout.readexactly(int.from_bytes(header, "big")))
    return answer
