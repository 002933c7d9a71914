"""Which severity the markers of fixtures stand for: here, as evidence keeps hashes of the texts of fixtures."""

from __future__ import annotations

from fixture_markers import Expected

from cudalint.finding import Severity

# Works and costs, or depends on what the code does not show. What any other rule finds fails on hardware.
_WARNINGS = frozenset({"CUD102", "CUD201", "CUD205", "CUD302", "CUD303", "CUD501", "CUD504", "CUD506"})
# True and meant, or harmless until a line changes: the rule as a rule, or the fixture, the code, the row, and why.
_NOTES = frozenset({"CUD501"})
_NOTED = {
    ("CUD201/broken_spawn_pool_initializer.py", "CUD201", 50): "an initializer gives each of four workers its model",
    ("CUD302/broken_bound_method_forkserver.py", "CUD302", 29): "Pool.map returns when all tasks are done",
    ("CUD302/broken_executor_model.py", "CUD302", 27): "its owner asks for the result",
    ("CUD302/broken_hogwild.py", "CUD302", 28): "mp.spawn holds the model and joins all ranks",
    ("CUD302/broken_pipe_fork_before_cuda.py", "CUD302", 32): "its owner receives an answer, and joins the process",
    ("CUD302/broken_queue_to_spawned.py", "CUD302", 33): "its owner waits for the consumer's event",
    ("CUD302/broken_spawn_pool_map.py", "CUD302", 23): "Pool.map returns when all tasks are done",
    ("CUD302/broken_spawn_process_args.py", "CUD302", 23): "its owner joins the process",
    ("CUD304/ok_waits_for_consumer.py", "CUD302", 18): "the producer waits for the consumer's event",
}
# What is softer than its rule: the fixture, the code, the row, and why.
_SOFTER = {
    ("CUD101/broken_cpu_fallback.py", "CUD101", 39): "the worker catches the failure and goes on without a GPU",
    ("CUD104/broken_celery_from_outside.py", "CUD104", 38): "a pool of threads on the command line cannot be seen",
    ("CUD206/ok_two_workers.py", "CUD206", 26): "two workers of TensorFlow still find room",
    ("CUD207/broken_numbers_of_variable.py", "CUD207", 22): "the variable may list the GPUs by their places",
    ("CUD502/broken_barrier_crosswise.py", "CUD502", 38): "a context on a GPU of another rank costs",
}


# What is harder than the notes of its rule, likewise.
_HARDER = {
    ("CUD502/ok_bare_barrier.py", "CUD501", 30): "a barrier uses a GPU in between",
}


# What fails, of a rule that mostly warns.
_FAILS = {
    ("CUD205/broken_pycuda_pool_of_threads.py", "CUD205", 30): "a thread without a context cannot use the GPU at all",
}


def severity(fixture: str, one: Expected) -> Severity:
    """The severity of a finding that a marker in a fixture names."""
    place = (fixture, one.code, one.row)
    if place in _NOTED or (one.code in _NOTES and place not in _HARDER):
        return Severity.NOTE
    softer = (one.code in _WARNINGS and place not in _FAILS) or place in _SOFTER
    return Severity.WARNING if softer else Severity.ERROR


def softened() -> set[tuple[str, Expected]]:
    """The fixtures and markers that are listed as other than their rule; columns are those of no marker."""
    return {(fixture, Expected(code, row, 0)) for fixture, code, row in (*_SOFTER, *_NOTED, *_HARDER, *_FAILS)}
