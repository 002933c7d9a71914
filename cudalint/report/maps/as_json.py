"""A map of processes as one document; fields may be added, none changes."""

from __future__ import annotations

from cudalint.project.process_map import Event, Harm, Launch, Place, ProcessMap, ProcessNode, Tree
from cudalint.report.json_text import as_text

VERSION = 1


def render(found: ProcessMap) -> str:
    """The trees as indented JSON."""
    lacks = [{"filename": lack.filename, "message": lack.message} for lack in found.lacks]
    return as_text({"version": VERSION, "trees": [_tree(tree) for tree in found.trees], "lacks": lacks})


def _tree(tree: Tree) -> dict[str, object]:
    return {
        "begins": tree.begins.value,
        "names": list(tree.names),
        "filename": tree.filename,
        "process": _process(tree.process),
    }


def _process(node: ProcessNode) -> dict[str, object]:
    return {
        "label": node.label,
        "launch": None if node.launch is None else _launch(node.launch),
        "events": [_event(event) for event in node.events],
        "findings": [_harm(harm) for harm in node.harmed],
        "children": [_process(child) for child in node.children],
    }


def _harm(harm: Harm) -> dict[str, object]:
    finding = harm.finding
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "message": finding.message,
        "condition": finding.condition,
        "known": harm.known,
        **_at(harm.place),
    }


def _launch(launch: Launch) -> dict[str, object]:
    return {
        "launcher": launch.launcher,
        "library": launch.library,
        "method": launch.method,
        "certain": launch.certain,
        "explicit": launch.explicit,
        "condition": launch.condition,
        "count": launch.count,
        "several": launch.many or launch.adds_up,
        "again": launch.again,
        "reused": launch.reused,
        "daemon": launch.daemon,
        "at": [_place(place) for place in launch.at],
        "made": _place(launch.made),
        "method_chosen_at": _place(launch.settled),
        "runs": [{"name": f.name, "prepares": f.prepares, "place": _place(f.place)} for f in launch.runs],
        "values": [
            {
                "name": carried.name,
                "alternatives": list(carried.what),
                "device": carried.device or None,
                "pickled": carried.pickled,
                "origin": _place(carried.origin),
            }
            for carried in launch.carries
        ],
        "environment": {variable.name: variable.value for variable in launch.environment},
        "cuda_before": None if launch.before is None else _event(launch.before),
    }


def _event(event: Event) -> dict[str, object]:
    return {
        "kind": event.deed.value,
        "message": event.message,
        "detail": event.detail,
        "in_thread": event.in_thread,
        "place": _place(event.place),
    }


def _place(place: Place | None) -> dict[str, object] | None:
    return None if place is None else _at(place)


def _at(place: Place) -> dict[str, object]:
    cell = {} if place.cell is None else {"cell": place.cell}
    return {"filename": place.filename, **cell, "row": place.row, "column": place.column}
