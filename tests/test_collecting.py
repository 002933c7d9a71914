"""Memory that is let go: what a finished call leaves unreachable is dropped, and nothing else is."""

from __future__ import annotations

import pytest

from cudalint.machine import collecting
from cudalint.machine.frame import Raised
from cudalint.machine.heap import Dict, Instance, Scope, Sequence
from cudalint.machine.state import Process, State
from cudalint.machine.trace import Site
from cudalint.machine.values import Const, Ref, Unknown, Value, const, unknown
from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile

MODULE = Ref(("module", "m"))
SITE = Site("m", 1)


@pytest.fixture
def state() -> State:
    made = State(Process(), {})
    made.store(MODULE, Scope({}, None, "m", "module"))
    return made


def test_variables_of_a_finished_call_are_dropped_and_its_result_is_kept(state: State) -> None:
    journal = collecting.begin(state)
    frame = state.new("frame", Scope({}, MODULE, "m", "function"))
    item = state.new("item", Sequence("list", ()))
    result = state.new("result", Sequence("list", ((item,),)))
    other = state.new("other", Sequence("list", ()))
    collecting.end([(state, (result,))], [], journal, ())
    assert state.get(frame) is None
    assert state.get(other) is None
    assert state.get(item) == Sequence("list", ())
    assert state.get(result) == Sequence("list", ((item,),))


def test_addresses_are_given_again_only_where_nothing_refers_to_them(state: State) -> None:
    kept = state.new("list", Sequence("list", ()))
    journal = collecting.begin(state)
    result = state.new("list", Sequence("tuple", ()))
    gone = state.new("list", Sequence("set", ()))
    collecting.end([(state, (result,))], [], journal, ())
    again = state.new("list", Sequence("list", (const(1),)))
    assert again == gone
    assert len({kept, result, again}) == 3
    assert state.get(kept) == Sequence("list", ())
    assert state.get(result) == Sequence("tuple", ())


def test_what_an_older_object_or_the_environment_was_given_stays(state: State) -> None:
    table = state.new("table", Dict({}))
    journal = collecting.begin(state)
    stored = state.new("stored", Sequence("list", ()))
    named = state.new("named", Sequence("list", ()))
    key = state.new("key", Sequence("list", ()))
    passed = state.new("passed", Sequence("list", ()))
    state.store(table, Dict({key: (stored,)}))
    state.set_variable(MODULE, "name", (named,))
    state.process = state.process.with_environ("X", (passed,))
    collecting.end([(state, ())], [], journal, ())
    assert None not in [state.get(ref) for ref in (stored, named, key, passed)]


@pytest.mark.parametrize("holder", ["result", "fact", "placed"])
def test_an_object_that_an_unknown_is_known_by_leaves_its_address_unused(state: State, holder: str) -> None:
    journal = collecting.begin(state)
    gone = state.new("new", Instance(MODULE, {}, SITE))
    value = unknown("attribute", gone.address, "ready")
    if holder == "fact":
        state.assume(("attribute", gone.address, "ready"), True)
    if holder == "placed":
        state.placed["attribute", gone.address, "ready"] = None  # type: ignore[assignment]
    collecting.end([(state, value if holder == "result" else ())], [], journal, ())
    assert state.get(gone) is None
    assert state.new("new", Instance(MODULE, {}, SITE)) != gone


def test_what_a_call_in_a_call_returned_lives_as_long_as_its_caller(state: State) -> None:
    outer = collecting.begin(state)
    inner = collecting.begin(state)
    result = state.new("result", Sequence("list", ()))
    collecting.end([(state, (result,))], [], inner, ())
    assert state.get(result) is not None
    collecting.end([(state, (Const(1),))], [], outer, ())
    assert state.get(result) is None


def test_paths_that_left_by_an_exception_or_split_are_collected_each_by_itself(state: State) -> None:
    journal = collecting.begin(state)
    shared = state.new("shared", Sequence("list", ()))
    raised = state.clone()
    collecting.end([(state, (shared,))], [(raised, Raised(None, ("ValueError",)))], journal, ())
    assert state.get(shared) is not None
    assert raised.get(shared) is None


def test_many_objects_that_were_frozen_are_dropped_with_their_layers(state: State) -> None:
    before = len(list(state.objects()))
    journal = collecting.begin(state)
    for number in range(100):
        state.new(("item", number), Sequence("list", ()))
    result = state.new("result", Sequence("list", ()))
    state.clone()
    assert not state.heap
    collecting.end([(state, (result,))], [], journal, ())
    assert len(list(state.objects())) == before + 1
    assert state.get(result) is not None


def test_what_a_context_manager_runs_within_it_keeps_what_it_is_about_to_return() -> None:
    text = """
import contextlib
import multiprocessing

import torch


class Work:
    def run(self, i):
        return torch.ones(1, device="cuda")


@contextlib.contextmanager
def inside():
    with contextlib.suppress(ValueError):
        yield 1


@contextlib.contextmanager
def given():
    with inside():
        yield Work()


if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    with given() as work, multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(work.run, [1, 2])
"""
    assert [f.code for f in analyse([SourceFile("given.py", text, text.encode())], Options()).findings] == ["CUD101"]


def test_unknowns_made_of_each_other_are_walked_once(state: State) -> None:
    journal = collecting.begin(state)
    gone = state.new("new", Instance(MODULE, {}, SITE))
    value: Value = unknown("attribute", gone.address, "size")
    for _ in range(200):
        sym = ("bin", value[0], value[0])
        value = (Unknown(sym),)
    collecting.end([(state, value)], [], journal, ())
    assert state.new("new", Instance(MODULE, {}, SITE)) != gone


def test_a_step_is_a_statement_however_much_ran_before() -> None:
    def steps(calls: int) -> int:
        body = "".join(f"    keep({number})\n" for number in range(calls))
        text = (
            "import multiprocessing\n\nimport torch\n\n\ndef keep(n):\n    row = [n, [n]]\n    return {n: row}\n\n\n"
            f"if __name__ == '__main__':\n    torch.zeros(1, device='cuda')\n"
            f"{body}    multiprocessing.Process(target=keep).start()\n"
        )
        return analyse([SourceFile("many.py", text, text.encode())], Options()).work.steps

    assert steps(800) - steps(400) == steps(400) - steps(0) == 400 * 3
