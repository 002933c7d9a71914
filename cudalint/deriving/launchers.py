"""Functions that start workers: which of their parameters these run, how they are started, and how many."""

from __future__ import annotations

from collections.abc import Iterable

from cudalint.deriving.effects import NEEDS_CUDA
from cudalint.deriving.entry import Setting
from cudalint.deriving.subject import Subject
from cudalint.deriving.trials import Trial, Where, probe, probed_in
from cudalint.ir.walk import functions
from cudalint.machine.launched import Launched
from cudalint.machine.values import NONE, Value, const
from cudalint.structs import Frozen

_HERE = "main process"
_MOST_PARAMETERS = 12


class Launcher(Frozen):
    """What is said of a launcher; ``runs`` is the function of the package that its workers run, if it is its own.

    ``is_earlier``: its workers were forked before, as those of a pool that an object was made with.
    """

    settings: tuple[tuple[str, Setting], ...]
    runs: str = ""
    is_earlier: bool = False


def launches(trial: Trial | None) -> list[Launched]:
    """The launches of a call, but of loaders: these start their workers when they are iterated."""
    if trial is None:
        return []
    return [launched for launched in trial.record.launches.values() if launched.family != "loader"]


def launcher(subject: Subject) -> Launcher | None:
    """What a function that starts workers is said to do; None where it runs nothing in them that matters."""
    for parameter in subject.names[:_MOST_PARAMETERS]:
        trial = subject.run({parameter: probe(parameter)}, Where.USED) or None
        if trial is not None and probed_in(trial, parameter) - {_HERE}:
            return _of_given(subject, parameter, trial)
    return _of_its_own(subject)


def _of_given(subject: Subject, parameter: str, trial: Trial) -> Launcher | None:
    """A launcher of the functions that it is given."""
    method = _method(subject, trial, {parameter: probe(parameter)})
    if method is None:
        return None
    forks = {launched.method for launched in launches(trial)} == {"fork"}
    if forks and not any(outcome.kind in NEEDS_CUDA for outcome in trial.record.outcomes):
        return Launcher((), is_earlier=True)
    settings: list[tuple[str, Setting]] = [("does", "fork-launcher"), *method, ("function", parameter)]
    settings += _counted(subject, parameter, trial)
    if subject.positions:
        settings.append(("params", subject.positions))
    return Launcher((*settings, *_failure(trial.record.outcomes)))


def _failure(outcomes: Iterable[object]) -> Iterable[tuple[str, Setting]]:
    ends = sorted({how for o in outcomes if (how := getattr(o, "how", "")) in ("crash", "hang", "child-death")})
    if len(ends) == 1:
        yield "failure", {"body": ends[0]}


def _method(subject: Subject, trial: Trial, given: dict[str, Value]) -> tuple[tuple[str, Setting], ...] | None:
    """How the workers start: as the function says, or by the default of a library; None where that is not one way."""
    old = {launched.method for launched in launches(trial)}
    new = {launched.method for launched in launches(subject.run_later(given, Where.USED))}
    libraries = {launched.library for launched in launches(trial)}
    if len(libraries) != 1 or len(old) != 1:
        return None
    library = libraries.pop()
    other: tuple[tuple[str, Setting], ...] = () if library == "multiprocessing" else (("library", library),)
    return (("method", old.pop()), *other) if old == new else other


def _counted(subject: Subject, parameter: str, trial: Trial) -> Iterable[tuple[str, Setting]]:
    """The parameter that says how many workers there are, where none of them means none."""
    if any(launched.family != "pool" for launched in launches(trial)):
        return
    for name in subject.names:
        if name == parameter or (name in subject.defaults and _starts(subject, parameter, {})):
            continue
        if any(_starts(subject, parameter, {name: value}) for value in (const(0), NONE)):
            continue
        if _starts(subject, parameter, {name: const(1)}) and _starts(subject, parameter, {name: const(2)}):
            yield "workers", name
            yield "kind", "map"
            return


def _starts(subject: Subject, parameter: str, given: dict[str, Value]) -> bool:
    trial = subject.run({parameter: probe(parameter), **given}, Where.USED)
    return trial is not None and bool(probed_in(trial, parameter) - {_HERE})


def _of_its_own(subject: Subject) -> Launcher | None:
    """A launcher of functions of the package, where these need CUDA."""
    trial = subject.run({}, Where.USED)
    if trial is None:
        return None
    fails = [o for o in trial.record.outcomes if o.kind in NEEDS_CUDA and o.certain and not o.facts]
    method = _method(subject, trial, {})
    targets = {site for launched in launches(trial) for site in launched.targets}
    if not fails or method is None or len(targets) != 1:
        return None
    module, ordinal = targets.pop()
    lowered = trial.machine.program.module(module)
    names = [f.qualname for f in functions(lowered.body) if f.ordinal == ordinal] if lowered is not None else []
    if len(names) != 1:
        return None
    runs = f"{module}.{names[0]}"
    return Launcher((("does", "fork-launcher"), *method, ("runs", runs), *_failure(fails)), runs)
