"""Axis 4: the start method and how a program chooses it."""

from __future__ import annotations

from oracle.text import Draft

METHODS = ("default", "fork", "spawn", "forkserver")
SETTERS = ("set_guard", "set_main", "set_force", "set_constant", "set_keyword")
CONTEXTS = ("context", "alias", "module_context", "mp_is_context", "constant", "argparse", "parameter", "table")
CHOSEN = ("default", *CONTEXTS, *SETTERS)

LIBRARIES = {
    "mp": ("import multiprocessing as mp", "mp"),
    "multiprocessing": ("import multiprocessing", "multiprocessing"),
    "torch": ("import torch.multiprocessing as mp", "mp"),
    "torch_from": ("from torch import multiprocessing", "multiprocessing"),
}


def render_method(draft: Draft, method: str, chosen: str, library: str, needed: bool) -> str:
    """Write the choice into the program; returns the expression of the context, the library itself by default."""
    line, name = LIBRARIES[library]
    if needed or chosen != "default":
        draft.imports.add(line)
    if chosen in SETTERS:
        _set(draft, method, chosen, name)
        return name
    if chosen == "default":
        return name
    return _context(draft, method, chosen, name)


def _set(draft: Draft, method: str, chosen: str, name: str) -> None:
    if chosen == "set_guard":
        draft.guard.append(f'{name}.set_start_method("{method}")')
    elif chosen == "set_main":
        draft.main.append(f'{name}.set_start_method("{method}")')
    elif chosen == "set_force":
        draft.main.append(f'{name}.set_start_method("{method}", force=True)')
    elif chosen == "set_keyword":
        draft.main.append(f'{name}.set_start_method(method="{method}")')
    else:
        draft.constants.append(f'START_METHOD = "{method}"')
        draft.guard.append(f"{name}.set_start_method(START_METHOD)")


def _context(draft: Draft, method: str, chosen: str, name: str) -> str:
    if chosen == "context":
        return f'{name}.get_context("{method}")'
    if chosen == "alias":
        draft.main.append(f'ctx = {name}.get_context("{method}")')
        return "ctx"
    if chosen == "module_context":
        draft.constants.append(f'CONTEXT = {name}.get_context("{method}")')
        return "CONTEXT"
    if chosen == "mp_is_context":
        draft.main.append(f'workers_mp = {name}.get_context(method="{method}")')
        return "workers_mp"
    return _named(draft, method, chosen, name)


def _named(draft: Draft, method: str, chosen: str, name: str) -> str:
    if chosen == "constant":
        draft.constants.append(f'START_METHOD = "{method}"')
        draft.main.append(f"ctx = {name}.get_context(START_METHOD)")
    elif chosen == "table":
        draft.constants.append(f'SETTINGS = {{"start_method": "{method}", "seed": 0}}')
        draft.main.append(f'ctx = {name}.get_context(SETTINGS["start_method"])')
    elif chosen == "argparse":
        draft.imports.add("import argparse")
        draft.main.append("parser = argparse.ArgumentParser()")
        draft.main.append(f'parser.add_argument("--start-method", default="{method}")')
        draft.main.append("args = parser.parse_args()")
        draft.main.append(f"ctx = {name}.get_context(args.start_method)")
    else:
        draft.parameters = f'start_method="{method}"'
        draft.main.append(f"ctx = {name}.get_context(start_method)")
    return "ctx"
