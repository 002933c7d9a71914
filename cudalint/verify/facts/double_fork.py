"""Measures what expressions do to CUDA across a fork. Run as ``python double_fork.py JOB``.

JOB is a JSON file: ``setup`` (imports), ``prepare`` (files that expressions read), ``use`` (how CUDA is used),
``check`` (whether it was a GPU that was used), ``inherit`` (what a parent makes before it forks), ``hang`` (seconds),
``questions``, ``places`` and ``tokens`` (see below) and ``answers`` (the file that gets a line of JSON for each).

This process imports the framework and touches nothing. A question is an expression and a side of the fork:

- ``later``: it forks A, which evaluates the expression and forks B, and B uses CUDA.
- ``inside``: it forks C, which uses CUDA and forks D, and D evaluates the expression. A C serves several questions, one
  after another, each with a D of its own.

Several A and C run at once; each is a *lane*, a session that is killed as a whole when it is done or late. Every lane
but the first needs a token, a byte of the pipe ``tokens``, which all measuring processes of this machine share. What is
not answered as the question ``expects`` is asked once more, in a lane of its own. Standard library only.
"""

import contextlib
import json
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

# Times the limit of one evaluation: a process that waits for another that hangs.
_OUTER = 3
# Questions that share a C.
_SHARED = 8
# Times the limit for a question that is asked once more.
_PATIENT = 2
_TICK = 0.005
_ROOTS = ("accelerate", "transformers", "lightning", "cupy", "numba", "jax")
_PARTS = ("utils", "fabric", "cuda", "numpy")

Names = dict[str, Any]
Question = dict[str, Any]


def forked(job: "Callable[[], Any]", limit: float) -> "tuple[str, Any]":
    """Run a job in a fork, a group of its own: ('ok', value), ('raised', text), ('aborted', None) or ('hang', None)."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _answer(job, limit, write)
    os.close(write)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    kill_group(pid)  # before it is reaped, so that the number is still its own
    _, status = os.waitpid(pid, 0)
    with os.fdopen(read, "rb") as stream:
        os.set_blocking(read, False)  # who has left the group may hold the other end
        data = stream.read()
    if data:
        kind, value = pickle.loads(data)
        return kind, value
    return ("hang", None) if os.WTERMSIG(status) == signal.SIGALRM else ("aborted", None)


def _answer(job: "Callable[[], Any]", limit: float, write: int) -> None:
    os.setpgid(0, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, limit)
    answer: tuple[str, Any]
    try:
        answer = ("ok", job())
    except BaseException as error:
        answer = ("raised", one_line(error))
    with os.fdopen(write, "wb") as stream:
        pickle.dump(answer, stream)
    os._exit(0)


def one_line(error: BaseException) -> str:
    """An exception as the end of its traceback says it."""
    return "".join(traceback.format_exception_only(error)).strip()[:300]


def tell(descriptor: int, told: "dict[str, Any]") -> None:
    """One line of JSON."""
    os.write(descriptor, (json.dumps(told) + "\n").encode())


def kill_group(pid: int) -> None:
    """End whoever is left of a process's group."""
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def evaluate(expression: str, names: Names) -> None:
    """Evaluate, and show the value as a caller would."""
    if expression.startswith("import "):
        exec(expression, names)
        return
    root = expression.partition(".")[0]
    if root in _ROOTS:
        exec(f"import {root}", names)
        for part in _PARTS:
            if expression.startswith(f"{root}.{part}"):
                exec(f"import {root}.{part}", names)
    str(eval(expression, names))


class Bench:
    """One framework, imported and untouched."""

    def __init__(self, job: "dict[str, Any]") -> None:
        self.names: Names = {"__name__": "double_fork"}
        self.use, self.check, self.inherit = job["use"], job.get("check"), job.get("inherit")
        self.hang = float(job["hang"])
        exec(job["setup"], self.names)
        if "numpy" not in sys.modules:
            exec("try:\n    import numpy\nexcept ImportError:\n    pass", {})  # once, not in every fork

    def try_use(self, prepare: "str | None") -> str:
        """Use CUDA in a fork, as every measurement will; gives what is wrong with it."""

        def use() -> bool:
            exec(self.use, self.names)
            if prepare:
                exec(prepare, self.names)
            return self.check is None or bool(eval(self.check, self.names))

        how, found = forked(use, self.hang * _OUTER)
        if how == "ok":
            return "" if found else "it finds no GPU"
        return str(found or how)

    def later(self, expression: str, patience: int) -> "dict[str, Any]":
        """In A: evaluate; then B uses CUDA."""
        seen: dict[str, Any] = {}
        try:
            evaluate(expression, self.names)
        except ModuleNotFoundError as error:
            return {"missing": error.name or str(error)}
        except Exception as error:
            seen["raised"] = f"{type(error).__name__}: {error}"[:300]
        torch = self.names.get("torch")
        if torch is not None:
            seen["initialises"] = bool(torch.cuda.is_initialized())
        how, text = forked(lambda: exec(self.use, self.names), self.hang * patience)
        return {**seen, "poisons": how != "ok", "symptom": text or how}

    def touch(self) -> None:
        """In C: use CUDA."""
        exec(self.inherit or self.use, self.names)

    def inside(self, expression: str, patience: int) -> "dict[str, Any]":
        """In C: D evaluates."""

        def in_d() -> str:
            try:
                evaluate(expression, self.names)
            except ModuleNotFoundError as error:
                return error.name or str(error)
            return ""

        how, text = forked(in_d, self.hang * patience)
        if how == "ok" and text:
            return {"missing": text}
        kind = {"ok": "ok", "raised": "fails", "aborted": "fails", "hang": "hang"}[how]
        return {"in_child": kind, "in_child_symptom": text or how}


class Lane:
    """Questions that one forked process answers, and the pipe by which it does."""

    def __init__(self, bench: Bench, side: str, questions: "list[Question]", patience: int) -> None:
        self.side, self.questions, self.patience = side, questions, patience
        self.text = b""
        self.has_token = False
        self.late = False
        limit = bench.hang * patience
        self.until = time.monotonic() + limit * (_OUTER + len(questions))
        self.read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._work(bench, write)
        os.close(write)
        os.set_blocking(self.read, False)

    def _work(self, bench: Bench, write: int) -> None:
        code = 1
        try:
            os.setsid()
            devnull = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(devnull, number)
            ask = bench.later if self.side == "later" else bench.inside
            answers = (ask(question["expression"], self.patience) for question in self.questions)
            if self.side == "inside":
                bench.touch()
            for answer in answers:
                tell(write, answer)
            code = 0
        except BaseException as error:
            tell(write, {"lost": one_line(error)})
        finally:
            os._exit(code)

    def take(self) -> "Iterator[tuple[Question, dict[str, Any]]]":
        """The answers that have come since."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.read, 1 << 16):
                self.text += data
        *lines, self.text = self.text.split(b"\n")
        for line in lines:
            yield self.questions.pop(0), json.loads(line)

    def has_ended(self) -> bool:
        """Whether it is over; it is, at the latest, when its time is."""
        if time.monotonic() > self.until:
            self.late = True
            kill_group(self.pid)
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None

    def close(self) -> str:
        """Leave nobody of it; gives how it ended."""
        for pid in session(self.pid):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.read)
        return "hang" if self.late else "ended" if status == 0 else "aborted"


def session(leader: int) -> "list[int]":
    """The processes of a session, in whatever group."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
            if int(stat.read().rpartition(b")")[2].split()[3]) == leader:
                found.append(int(name))
    return found


class Desk:
    """Asks all questions, several at a time."""

    def __init__(self, bench: Bench, places: int, tokens: str, answers: str) -> None:
        self.bench = bench
        self.places = places
        self.tokens = os.open(tokens, os.O_RDWR | os.O_NONBLOCK)
        self.answers = os.open(answers, os.O_WRONLY | os.O_APPEND)
        self.waiting: list[tuple[str, list[Question], int]] = []
        self.lanes: list[Lane] = []

    def say(self, **told: Any) -> None:
        """One line for who reads along."""
        tell(self.answers, told)

    def ask(self, questions: "list[Question]") -> None:
        """Ask, until everything is answered."""
        self.waiting = list(chunks(questions))
        while self.waiting or self.lanes:
            while self.waiting and self._start():
                pass
            for lane in list(self.lanes):
                self._serve(lane)
            time.sleep(_TICK)

    def _start(self) -> bool:
        if len(self.lanes) >= self.places:
            return False
        has_token = False
        if any(not lane.has_token for lane in self.lanes):
            try:
                has_token = bool(os.read(self.tokens, 1))
            except BlockingIOError:
                return False
        side, questions, patience = self.waiting.pop(0)
        lane = Lane(self.bench, side, questions, patience)
        lane.has_token = has_token
        self.lanes.append(lane)
        return True

    def _serve(self, lane: Lane) -> None:
        ended = lane.has_ended()
        for question, answer in lane.take():
            self._judge(lane, question, answer)
        if not ended:
            return
        self.lanes.remove(lane)
        how = lane.close()
        if lane.has_token:
            os.write(self.tokens, b"+")
        for question in lane.questions:
            self._judge(lane, question, {"lost": how})

    def _judge(self, lane: Lane, question: Question, answer: "dict[str, Any]") -> None:
        expected = question["expects"]
        key = "poisons" if lane.side == "later" else "in_child"
        as_expected = expected is None or answer.get(key) == expected or "missing" in answer
        if as_expected or lane.patience == _PATIENT:
            self.say(expression=question["expression"], side=lane.side, **answer)
            return
        self.waiting.append((lane.side, [question], _PATIENT))


def chunks(questions: "list[Question]") -> "Iterator[tuple[str, list[Question], int]]":
    """What one lane is asked; first what takes long."""
    slow = [question for question in questions if question["slow"]]
    rest = [question for question in questions if not question["slow"]]
    yield from ((question["side"], [question], 1) for question in slow)
    yield from (("later", [question], 1) for question in rest if question["side"] == "later")
    inside = [question for question in rest if question["side"] == "inside"]
    for first in range(0, len(inside), _SHARED):
        yield "inside", inside[first : first + _SHARED], 1


def main() -> None:
    """Measure all expressions of a job."""
    with open(sys.argv[1]) as stream:
        job = json.load(stream)
    began = time.monotonic()
    try:
        bench = Bench(job)
    except ModuleNotFoundError as error:
        print("missing:", error.name or error, flush=True)
        return
    ready = time.monotonic()
    desk = Desk(bench, job["places"], job["tokens"], job["answers"])
    wrong = bench.try_use(job.get("prepare"))
    if wrong:
        desk.say(unusable=wrong)
        return
    used = time.monotonic() - ready
    bench.hang = max(bench.hang, _OUTER * used) if job["stretch"] else bench.hang
    desk.say(ready=round(ready - began, 1), use=round(used, 1), hang=round(bench.hang, 1))
    desk.ask(job["questions"])


if __name__ == "__main__":
    main()
