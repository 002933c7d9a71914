"""scikit-learn: searches and validations that hand clones of a user's estimator to joblib's workers."""

from __future__ import annotations

from cudalint.machine.effects.concurrency.joblib import KEEPS, parallel, parallel_call
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Closure, Instance, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.arguments import task
from cudalint.machine.state import State
from cudalint.machine.values import FALSE, NONE, Atom, Bound, Lib, Ref, Value, unknown
from cudalint.structs import replace


def search(machine: Machine, call: Call) -> Results:
    """``GridSearchCV(estimator, grid, n_jobs=)``: fits nothing yet; ``kind = "clones"``: only clones, ever."""
    fields: dict[str, Value] = {
        "<estimator>": call.get("estimator") or NONE,
        "<jobs>": call.get("n_jobs") or NONE,
        "<refit>": FALSE if call.text("kind") == "clones" else call.get("refit") or (),
    }
    made = LibraryObject("sklearn.model_selection.Search", fields, call.site)
    return [(call.state, (call.state.new(("search", call.site), made),))]


def search_fit(machine: Machine, call: Call) -> Results:
    """``search.fit(X, y)``: fits clones in workers, then the best one here, unless it is told not to."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if not isinstance(found, LibraryObject) or call.receiver is None:
        return [(call.state, unknown("search", call.site))]
    estimator = found.fields.get("<estimator>", NONE)
    results: Results = []
    for state, _ in _in_workers(machine, call, estimator, found.fields.get("<jobs>", NONE)):
        if found.fields.get("<refit>") == FALSE:
            results.append((state, (call.receiver,)))
            continue
        for method in _methods(machine, estimator, "fit", state):
            for after, _ in machine.call_value((method,), list(call.args), {}, state, call.frame, call.site):
                results.append((after, (call.receiver,)))
    return results


def validate(machine: Machine, call: Call) -> Results:
    """``cross_val_score(estimator, X, y, n_jobs=)``: fits clones in workers."""
    estimator = call.get("estimator") or NONE
    rest = replace(call, args=call.args[1:])
    done = _in_workers(machine, rest, estimator, call.kwargs.get("n_jobs", NONE))
    return [(state, unknown("scores", call.site)) for state, _ in done]


def _in_workers(machine: Machine, call: Call, estimator: Value, jobs: Value) -> Results:
    """Fit clones on the same data, as many at a time as there are jobs."""
    cloned: list[tuple[State, tuple[Atom, ...]]] = [(call.state, ())]
    for atom in estimator:
        cloned = [(after, (*made, one)) for s, made in cloned for after, one in _clone(machine, call, atom, s)]
    return [done for state, clones in cloned for done in _fitted(machine, replace(call, state=state), clones, jobs)]


def _fitted(machine: Machine, call: Call, clones: tuple[Atom, ...], jobs: Value) -> Results:
    state = call.state
    methods: Value = tuple(m for c in clones for m in _methods(machine, (c,), "fit", state))
    if not methods:
        return [(state, NONE)]
    data = [*call.args, *(call.kwargs[n] for n in ("X", "y") if n in call.kwargs)][:2]
    work: Value = (task(methods, data),)
    given = state.new(("fits", call.site), Sequence("list", None, work))
    made = parallel(machine, replace(call, args=[], kwargs={"n_jobs": jobs}, spec={}))
    results: Results = []
    for after, pool in made:
        running = replace(call, state=after, args=[(given,)], kwargs={}, receiver=pool[0], spec={KEEPS: True})
        results.extend(parallel_call(machine, running))
    return results


def _methods(machine: Machine, estimator: Value, name: str, state: State) -> list[Atom]:
    """The ``fit`` of estimators whose code, or whose model, is known."""
    found: list[Atom] = []
    for atom in estimator:
        obj = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(obj, Instance):
            method = machine.user_method(obj, name, state)
            if method is not None:
                found.append(Bound(method, atom))
        elif isinstance(obj, LibraryObject) and machine.library.function(f"{obj.type}.{name}") is not None:
            found.append(Bound(Lib(f"{obj.type}.{name}"), atom))
    return found


def _clone(machine: Machine, call: Call, atom: Atom, state: State) -> list[tuple[State, Atom]]:
    """``clone(estimator)``: made anew of what its ``__init__`` was given, without what fitting left behind."""
    found = state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(found, Instance):
        return [(state, atom)]
    init = machine.user_method(found, "__init__", state)
    closure = state.get(init) if isinstance(init, Ref) else None
    if not isinstance(closure, Closure):
        return [(state, state.new(("clone", found.site), replace(found, attributes={})))]
    names = {p.name for p in closure.function.params}
    kept = {k: v for k, v in found.attributes.items() if k in names}
    made = machine.call_value((found.cls,), [], kept, state, call.frame, call.site)
    return [(after, clone) for after, value in made for clone in value[:1]]


def pipeline(machine: Machine, call: Call) -> Results:
    """``make_pipeline(a, b)``, ``Pipeline([(name, a), ...])``."""
    state = call.state
    given = call.get("steps")
    values = list(call.args)
    if given is not None:
        rows = [machine.exact_items(row, state) or [] for row in machine.elements(given, state)]
        values = [row[-1] for row in rows if row]
    steps = state.new(("steps", call.site), Sequence("list", tuple(values)))
    made = LibraryObject("sklearn.pipeline.Pipeline", {"<steps>": (steps,)}, call.site)
    return [(state, (state.new(("pipeline", call.site), made),))]


def pipeline_fit(machine: Machine, call: Call) -> Results:
    """``pipeline.fit(X, y)``, ``pipeline.predict(X)``: each step in turn, on what the one before it gives."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    steps = machine.elements(found.fields["<steps>"], call.state) if isinstance(found, LibraryObject) else []
    name = call.path.rpartition(".")[2]
    results: Results = [(call.state, call.get("X") or NONE)]
    for place, step in enumerate(steps):
        actions = _actions(machine, step, name, place == len(steps) - 1, call.state)
        results = [done for state, data in results for done in _step(machine, call, step, actions, state, data)]
    fitted = name == "fit" and call.receiver is not None
    return [(state, (call.receiver,) if fitted and call.receiver is not None else data) for state, data in results]


def _actions(machine: Machine, step: Value, name: str, is_last: bool, state: State) -> list[str]:
    """The methods of a step that a method of its pipeline calls."""
    fits, _, then = name.partition("_")
    if fits != "fit":
        return [name if is_last else "transform"]
    then = then if is_last else "transform"
    if then and _methods(machine, step, f"fit_{then}", state):
        return [f"fit_{then}"]
    return ["fit", then] if then else ["fit"]


def _step(machine: Machine, call: Call, step: Value, actions: list[str], state: State, data: Value) -> Results:
    """What a step gives; of a library's estimator that is not known."""
    results: Results = [(state, data)]
    target = call.get("y")
    for action in actions:
        following: Results = []
        for before, given in results:
            methods = _methods(machine, step, action, before)
            if not methods:
                following.append((before, given if action == "fit" else unknown("step", call.site, action)))
            args = [given, target] if target is not None and action.startswith(("fit", "score")) else [given]
            for method in methods[:1]:
                done = machine.call_value((method,), args, {}, before, call.frame, call.site)
                following.extend((after, given if action == "fit" else value) for after, value in done)
        results = following
    return results
