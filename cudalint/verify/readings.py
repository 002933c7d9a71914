"""What the probe read of devices, values and exit codes, held against what a finding predicts.

A reading says that a prediction came true, or that it did not; that nothing crashed is no reading.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from cudalint.finding import Finding, StepKind
from cudalint.structs import Frozen, replace
from cudalint.verify.gpus import Gpu
from cudalint.verify.headers import Outcome
from cudalint.verify.journal import Event, Journal
from cudalint.verify.places import effects, noted, places, stands, surrounds
from cudalint.verify.runner import Run
from cudalint.verify.sayings import OF_DEATHS, OF_FORKS

_INDEX = re.compile(r"(\d+)\D*$")
# Where what fails is the statement of the effect itself: passing it contradicts the prediction.
_FAILS_THERE = (OF_FORKS - {"CUD301"}) | {"CUD107", "CUD108", "CUD403", "CUD404", "CUD505"}
_FAILING = frozenset(outcome.value for outcome in Outcome if outcome.fails)
# Shares of a GPU's memory: what a greedy process takes, and what one takes that is none.
_GREEDY, _MODEST = 0.6, 0.5
# A process that used no processor for so many seconds waits.
_WAITING_SECONDS = 1.0
_GAVE_UP = re.compile(r"^(?:[\w.]*\.)?(?:TimeoutError|TimeoutExpired|Empty|Full)\b")


class Reading(Frozen):
    """What was read: whether it agrees with the prediction, contradicts it, or (``None``) could show neither."""

    agrees: bool | None
    text: str


class _Usage(Frozen):
    """Of one process at one moment: the device of the thread, the allocations so far per device, the GPUs it has."""

    current: int
    made: Mapping[int, int]
    gpus: tuple[str, ...]

    def since(self, before: _Usage | None) -> dict[int, int]:
        """How many allocations each device had since an earlier moment, where it had any."""
        had = before.made if before is not None else {}
        grown = {device: count - had.get(device, 0) for device, count in self.made.items()}
        return {device: count for device, count in grown.items() if count > 0}

    @property
    def used(self) -> frozenset[str]:
        """The GPUs on which something was allocated."""
        return frozenset(self.gpus[device] for device in self.since(None) if device < len(self.gpus))


class Readings(Frozen):
    """All that was read of one run, on a machine with these GPUs."""

    run: Run
    journal: Journal
    machine: Sequence[Gpu]

    def of(self, finding: Finding) -> Reading | None:
        """What was read about one finding; a reading that agrees counts before one that contradicts."""
        found = [one for one in self._all(finding) if one is not None]
        order = {True: 0, False: 1, None: 2}
        return min(found, key=lambda one: order[one.agrees], default=None)

    def _all(self, finding: Finding) -> Iterator[Reading | None]:
        match finding.code:
            case "CUD201":
                yield self._contexts(finding)
            case "CUD202" | "CUD203":
                yield from self._visible(finding)
            case "CUD204":
                yield from self._statements(finding)
            case "CUD205":
                yield from self._threads(finding)
            case "CUD206":
                yield self._memory(finding)
            case "CUD302":
                yield self._host(finding)
            case "CUD304":
                yield self._owners()
            case "CUD502" | "CUD503":
                yield self._not_yet(finding, self._ranks())
            case "CUD504":
                yield from self._early(finding)
            case "CUD506":
                yield from self._rank_numbers(finding)
        if finding.outcome in _FAILING:
            yield self._died(finding)
            yield self._worked(finding)
            yield self._passed(finding)

    def waits(self, finding: Finding, said: Iterable[str]) -> str | None:
        """Whether a process that a finding says to hang was seen waiting when the program ended it, and how.

        ``said`` are the exceptions of the program; one of them may say that it gave up waiting.
        """
        if finding.outcome != Outcome.HANG.value:
            return None
        gave_up = next((text for text in said if _GAVE_UP.match(text)), None)
        workers = self.workers(finding)
        if gave_up is not None and not workers:
            workers = frozenset(self.journal.made_by)
        stuck = noted(self.journal, "reached", effects(finding)) - noted(self.journal, "passed", effects(finding))
        for pid in sorted(workers):
            seconds = self.run.rested.get(pid, 0.0)
            if seconds >= _WAITING_SECONDS and (gave_up is not None or pid in stuck):
                told = f", and who waited for it gave up ({gave_up})" if gave_up is not None else ", when it was ended"
                return f"process {pid} had waited for {seconds:.0f} s without using the processor{told}"
        return None

    def workers(self, finding: Finding) -> frozenset[int]:
        """The processes that were started at the places of a finding, or else in their functions."""
        spans = places(finding)
        made = [
            *(
                (pid, self.journal.forks[fork].stack)
                for pid, fork in self.journal.made_by.items()
                if fork in self.journal.forks
            ),
            *((int(event.values[0]), event.stack) for event in self.journal.of("start")),
        ]
        exact = frozenset(pid for pid, stack in made if stands(spans, stack))
        return exact or frozenset(pid for pid, stack in made if surrounds(spans, stack))

    # ------------------------------------------------------------ what fails

    def _died(self, finding: Finding) -> Reading | None:
        """A child that a signal ended, while its parent went on."""
        if finding.code not in OF_DEATHS:
            return None
        for pid in sorted(self.workers(finding)):
            code = self.run.deaths.get(pid, 0)
            if code < 0:
                return Reading(True, f"process {pid}, which it started, died of signal {-code}")
            if code > 0:  # of what, its exception would have to say
                return Reading(None, f"process {pid}, which it started, ended with exit code {code}")
        return None

    def _worked(self, finding: Finding) -> Reading | None:
        """A forked child that used CUDA all the same."""
        if finding.code not in OF_FORKS:
            return None
        workers = self.workers(finding)
        if any(event.pid in workers for event in self.journal.of("failed", "try")) or self._anything_died:
            return None
        used = sorted(event.pid for event in self.journal.of("init", "worked") if event.pid in workers)
        return Reading(False, f"process {used[0]}, which it started, used CUDA without an error") if used else None

    def _passed(self, finding: Finding) -> Reading | None:
        """The statement that was to fail was passed without an exception, and all processes ended well."""
        if finding.code not in _FAILS_THERE or self._anything_died:
            return None
        if finding.code in OF_FORKS and not any(fork.guilty for fork in self.journal.forks.values()):
            return None  # nobody had asked for CUDA: what was to go wrong was not tried
        spans = effects(finding)
        passed = noted(self.journal, "passed", spans)
        if any(step.kind is StepKind.LAUNCH for step in finding.trace) or _in_a_worker(finding):
            passed -= noted(self.journal, "reached", [finding.span])
        if not passed:
            return None
        where = f"{os.path.basename(spans[0].filename)}:{spans[0].start.row}"
        return Reading(False, f"process {min(passed)} passed {where} without an exception and ended well")

    @property
    def _anything_died(self) -> bool:
        return self.run.end != "ended" or bool(self.run.code) or bool(self.run.deaths)

    # ------------------------------------------------------------ devices

    def _statements(self, finding: Finding) -> Iterator[Reading]:
        for position, event in self._at(finding, "asked"):
            value, thread, before = event.values[0], event.values[1], _usage(event.values[2])
            wanted, current = _index(value), before.current if before is not None else 0
            if wanted is None or wanted == current:
                yield Reading(None, f"GPU {current} was asked for, which was the current one: it made no difference")
                continue
            yield self._after_statement(finding, position, thread, before, wanted, current)

    def _after_statement(
        self, finding: Finding, position: int, thread: int, before: _Usage | None, wanted: int, current: int
    ) -> Reading:
        for later in self._later(position, thread):
            usage = _of(later)
            grown = usage.since(before) if usage is not None else {}
            if later.kind == "select" and stands(places(finding), later.stack):
                chosen = _index(later.values[0])
                return Reading(chosen != wanted, f"the statement selected GPU {chosen}")
            if usage is not None and grown.get(current) and usage.current == current:
                return Reading(True, f"GPU {wanted} was asked for, and what was allocated next is on GPU {current}")
            if usage is not None and usage.current == wanted and set(grown) == {wanted} and later.kind != "select":
                return Reading(False, f"GPU {wanted} was asked for, and all that was allocated next is there")
            if later.kind == "select":
                break
        return Reading(None, "nothing was seen to be allocated afterwards")

    def _threads(self, finding: Finding) -> Iterator[Reading]:
        for position, event in self._at(finding, "thread"):
            thread, before, after = event.values[0], _usage(event.values[1]), _usage(event.values[2])
            selected = [one for one in self.journal.events[:position] if one.kind == "select" and one.pid == event.pid]
            chosen = next((_index(one.values[0]) for one in reversed(selected) if one.values[1] != thread), None)
            grown = after.since(before) if after is not None else {}
            if not chosen or after is None or not grown:
                yield Reading(None, "GPU 0 had been chosen" if chosen == 0 else "the thread was not seen to use a GPU")
            elif after.current == chosen:
                yield Reading(False if set(grown) == {chosen} else None, f"the thread itself was on GPU {chosen}")
            elif after.current in grown:
                yield Reading(True, f"GPU {chosen} had been chosen, and the thread allocated on GPU {after.current}")

    def _early(self, finding: Finding) -> Iterator[Reading]:
        reached = noted(self.journal, "reached", effects(finding))
        for event in self.journal.of("select"):
            chosen, before = _index(event.values[0]), _of(event)
            if not chosen:
                continue
            if before is not None and before.since(None).get(0):
                said = (
                    f"process {event.pid} had made {before.made[0]} allocations on GPU 0 before it chose GPU {chosen}"
                )
                yield Reading(True, said)
            elif event.pid in reached and 0 not in (self._last(event.pid) or _Usage(0, {0: 1}, ())).since(None):
                yield Reading(False, f"process {event.pid} allocated on GPU {chosen} and never on GPU 0")

    def _rank_numbers(self, finding: Finding) -> Iterator[Reading]:
        for _, event in self._at(finding, "select"):
            rank, local = event.values[3]
            chosen = _index(event.values[0])
            if not (rank or "").isdecimal() or not (local or "").isdecimal() or rank == local:
                yield Reading(None, "its global and its local rank are the same here, or not known")
            elif chosen == int(rank):
                yield Reading(True, f"rank {rank}, which is {local} on its machine, chose GPU {chosen}")
            elif chosen == int(local):
                yield Reading(False, f"rank {rank}, which is {local} on its machine, chose GPU {chosen}")

    def _ranks(self) -> Reading | None:
        pids = sorted({event.pid for event in self.journal.of("group")})
        return _shared({pid: usage.used for pid in pids if (usage := self._last(pid)) is not None}, "ranks")

    @staticmethod
    def _not_yet(finding: Finding, read: Reading | None) -> Reading | None:
        """What is latent is not contradicted by a run that goes well."""
        latent = finding.outcome == Outcome.LATENT.value
        return replace(read, agrees=None) if latent and read is not None and read.agrees is False else read

    def _contexts(self, finding: Finding) -> Reading | None:
        return _shared({pid: self._gpus(pid) for pid in sorted(self.workers(finding))}, "workers")

    def _gpus(self, pid: int) -> frozenset[str]:
        usage = self._last(pid)
        if usage is not None and usage.used:
            return usage.used
        names = {gpu.index: gpu.uuid.removeprefix("GPU-") or str(gpu.index) for gpu in self.machine}
        held = (one.gpu for one in self.run.footprints if one.pid == pid)
        return frozenset(names.get(index, str(index)) for index in held)

    def _memory(self, finding: Finding) -> Reading | None:
        sizes = {gpu.index: gpu.memory_mib for gpu in self.machine}
        workers = self.workers(finding)
        held = [
            (one.gpu, one.mib / sizes[one.gpu], one.mib)
            for one in self.run.footprints
            if one.pid in workers and one.mib and sizes.get(one.gpu)
        ]
        if not held:
            return None
        _, share, mib = max(held, key=lambda one: one[1])
        if share >= _GREEDY:
            return Reading(True if len(held) > 1 else None, f"one of {len(held)} workers held {mib} MiB of its GPU")
        return Reading(False if share < _MODEST and len(held) > 1 else None, f"no worker held more than {mib} MiB")

    def _visible(self, finding: Finding) -> Iterator[Reading]:
        honoured: dict[int, set[str]] = {}
        for position, event in self._at(finding, "visible"):
            value, old = event.values[0], event.values[1]
            asked, had = self._named(value), self._named(old)
            before = next((one for one in map(_of, reversed(self._of_process(event.pid, 0, position))) if one), None)
            had = before.gpus if before is not None else had
            after = self._of_process(event.pid, position + 1, len(self.journal.events))
            until = next((index for index, one in enumerate(after) if one.kind == "visible"), len(after))
            really = next((one.gpus for one in map(_of, after[:until]) if one is not None), None)
            if really is None or not asked:
                continue
            if really == asked:
                honoured.setdefault(event.pid, set()).add(value)
                several = (finding.code == "CUD202" and asked != had) or len(honoured[event.pid]) > 1
                yield Reading(False if several else None, f"{value!r} was asked for, and the process has just that")
            else:
                yield Reading(True, f"{value!r} was asked for, and the process has {self._in_words(really)}")

    def _named(self, value: str | None) -> tuple[str, ...]:
        """The GPUs that a value of CUDA_VISIBLE_DEVICES shows, read as CUDA reads it."""
        if value is None:
            return tuple(gpu.uuid.removeprefix("GPU-") for gpu in self.machine)
        found: list[str] = []
        for word in map(str.strip, value.split(",")):
            gpu = next((gpu for gpu in self.machine if gpu.answers_to(word)), None)
            if gpu is None:
                break
            found.append(gpu.uuid.removeprefix("GPU-"))
        return tuple(found)

    def _in_words(self, uuids: Iterable[str]) -> str:
        names = {gpu.uuid.removeprefix("GPU-"): str(gpu.index) for gpu in self.machine}
        return "GPU " + " and ".join(names.get(uuid, uuid) for uuid in uuids)

    # ------------------------------------------------------------ values

    def _host(self, finding: Finding) -> Reading | None:
        sent = [event for _, event in self._at(finding, "host")]
        if not sent or any(self.journal.of("send")):
            return None
        return Reading(False, f"process {sent[0].pid} sent memory of the host, and none of a GPU")

    def _owners(self) -> Reading | None:
        positions = {(event.kind, event.pid): index for index, event in enumerate(self.journal.events)}
        owners = {pid for kind, pid in positions if kind == "send"}
        received = [index for (kind, pid), index in positions.items() if kind == "received" and pid not in owners]
        ends = [positions.get(("left", pid), len(self.journal.events)) for pid in owners]
        if not received or not ends or any(self.journal.of("lost")):
            return None
        if max(received) < min(ends):
            return Reading(False, "all values were received while their owner was still there")
        return Reading(None, "a value was received after its owner had ended, which went well this time")

    # ------------------------------------------------------------ the notes

    def _at(self, finding: Finding, kind: str) -> Iterator[tuple[int, Event]]:
        """The notes of a kind that were made at the places of a finding, with their positions."""
        spans = [*places(finding), *effects(finding)]
        for position, event in enumerate(self.journal.events):
            if event.kind == kind and stands(spans, event.stack):
                yield position, event

    def _of_process(self, pid: int, begin: int, end: int) -> list[Event]:
        return [event for event in self.journal.events[begin:end] if event.pid == pid]

    def _later(self, position: int, thread: int) -> Iterator[Event]:
        """The notes of the same thread that came afterwards."""
        events = self.journal.events
        for event in events[position + 1 :]:
            if event.pid == events[position].pid and _thread(event) == thread:
                yield event

    def _last(self, pid: int) -> _Usage | None:
        """What a process was last seen to have used."""
        return next(
            (one for one in map(_of, reversed(self._of_process(pid, 0, len(self.journal.events)))) if one), None
        )


def _shared(used: Mapping[int, frozenset[str]], who: str) -> Reading | None:
    """Whether processes use the same GPU."""
    known = {pid: gpus for pid, gpus in used.items() if gpus}
    if len(known) < 2:
        return None
    for (one, left), (other, right) in combinations(known.items(), 2):
        if left & right:
            return Reading(True, f"processes {one} and {other} use the same GPU")
    return Reading(False, f"{len(known)} {who} use a GPU of their own each")


def _in_a_worker(finding: Finding) -> bool:
    return any(step.kind is StepKind.EFFECT and step.process != "main process" for step in finding.trace)


def _thread(event: Event) -> int | None:
    """The thread that made a note with a reading."""
    match event.kind:
        case "usage" | "left" | "thread":
            return int(event.values[0])
        case "select" | "asked":
            return int(event.values[1])
        case _:
            return None


def _of(event: Event) -> _Usage | None:
    """The reading in a note: of a thread the one at its end."""
    match event.kind:
        case "usage" | "left":
            return _usage(event.values[1])
        case "select" | "asked" | "thread":
            return _usage(event.values[2])
        case _:
            return None


def _usage(value: tuple[int, Mapping[int, int], Sequence[str]] | None) -> _Usage | None:
    return None if value is None else _Usage(value[0], value[1], tuple(value[2]))


def _index(text: str) -> int | None:
    found = _INDEX.search(text)
    return None if found is None else int(found[1])
