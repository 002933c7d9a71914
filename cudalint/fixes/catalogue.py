"""Which repairs a rule has, the preferred ones first."""

from __future__ import annotations

from cudalint.fixes import (
    barriers,
    batches,
    checkpoints,
    crossing,
    devices,
    fresh,
    hidden,
    late,
    launchers,
    lifting,
    loaders,
    memory,
    nesting,
    own_objects,
    queries,
    ranks,
    results,
    start_method,
    threads,
)
from cudalint.fixes.proposal import Repair

_FORKED: tuple[Repair, ...] = (
    results.move_in_parent,
    queries.count_instead,
    start_method.spawn,
    checkpoints.to_the_host,
    launchers.spawning_library,
    start_method.joblib_threads,
    start_method.before_cuda,
)
_REPAIRS: dict[str, tuple[Repair, ...]] = {
    "CUD101": _FORKED,
    "CUD102": _FORKED,
    "CUD103": (
        queries.count_instead,
        start_method.spawn,
        crossing.on_the_cpu,
        start_method.joblib_threads,
        crossing.copy_before_fork,
    ),
    "CUD104": (
        queries.count_instead,
        launchers.spawning_strategy,
        launchers.no_preload,
        launchers.in_each_worker,
        launchers.spawning_library,
        launchers.in_this_process,
        launchers.launch_first,
        launchers.after_the_fork,
    ),
    "CUD105": (late.choose_first, late.right_library, late.own_context, late.over_an_import, late.from_the_start),
    "CUD106": (start_method.guard,),
    "CUD107": (
        nesting.executor_instead,
        nesting.no_daemon,
        nesting.load_in_the_worker,
        nesting.threads_inside,
        nesting.one_level,
    ),
    "CUD108": (
        start_method.same_context,
        fresh.constant_above_guard,
        fresh.call_itself,
        fresh.named_function,
        lifting.partial_in_place,
        lifting.def_in_place,
        lifting.to_the_top,
        own_objects.left_out,
        fresh.sent_along,
    ),
    "CUD201": (memory.fewer_contexts,),
    "CUD202": (devices.visible_in_time, devices.set_in_the_environment),
    "CUD203": (devices.by_index, devices.process_per_gpu),
    "CUD204": (devices.select_instead,),
    "CUD205": (threads.select_in_threads,),
    "CUD206": (memory.growth_first, memory.share_memory, memory.growth_in_each_process),
    "CUD207": (hidden.by_its_place, hidden.decide),
    "CUD301": (crossing.on_the_cpu, start_method.spawn, crossing.copy_before_fork),
    "CUD302": (crossing.through_the_cpu, crossing.keep_shared),
    "CUD303": (crossing.through_the_cpu, crossing.threads_instead),
    "CUD304": (crossing.as_array, crossing.wait_for_receiver),
    "CUD305": (
        crossing.on_the_host,
        own_objects.made_by_the_worker,
        own_objects.left_out,
        crossing.not_through_a_channel,
        crossing.made_in_worker,
    ),
    "CUD401": (
        batches.move_in_loop,
        queries.count_instead,
        start_method.spawn,
        checkpoints.to_the_host,
        loaders.stay_on_cpu,
    ),
    "CUD402": (loaders.no_workers, start_method.spawn),
    "CUD403": (loaders.no_pinning,),
    "CUD404": (loaders.generator_on_device, loaders.no_workers, loaders.without_default),
    "CUD501": (ranks.select_first, ranks.select_early, ranks.local_rank_advice),
    "CUD502": (
        barriers.name_the_gpu,
        barriers.unless_guessed(ranks.select_first),
        barriers.unless_guessed(ranks.select_early),
        barriers.unless_guessed(ranks.local_rank_advice),
    ),
    "CUD503": (ranks.select_own, ranks.local_rank_advice),
    "CUD504": (
        checkpoints.to_own_gpu,
        ranks.by_an_earlier_choice(ranks.select_first),
        ranks.by_an_earlier_choice(ranks.select_early),
        ranks.by_an_earlier_choice(ranks.local_rank_advice),
        ranks.leave_to_launcher,
    ),
    "CUD505": (ranks.rendezvous,),
    "CUD506": (ranks.local_instead,),
}


# Only where a program fails on every path can a change of it be safe; for all other rules it never is.
_SAFE = frozenset({"CUD101", "CUD401", "CUD403"})


def may_be_safe(code: str) -> bool:
    """Whether a repair of a rule can be proven to be safe."""
    return code in _SAFE


def repairs(code: str) -> tuple[Repair, ...]:
    """The repairs of a rule."""
    return _REPAIRS.get(code, ())
