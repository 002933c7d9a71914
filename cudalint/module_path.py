"""Where modules are looked for: never in the current folder, which may be what is checked.

So it imports nothing that Python has not imported before the first line of a program.
"""

import os
import sys


def without_the_current_folder(path: list[str]) -> list[str]:
    """A path of modules without the current folder, which ``python -m`` and an empty element of PYTHONPATH put there.

    Where it is one of those in which Python itself and installed packages lie, it stays, in its last place.
    """
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # it was removed: nothing is found in it
        return [place for place in path if place]
    places = [os.path.realpath(place or here) for place in path]
    last = max((i for i, place in enumerate(places) if path[i] and place == here), default=None)
    kept = last if here in _own_folders() else None
    return [place for i, place in enumerate(path) if places[i] != here or i == kept]


def _own_folders() -> set[str]:
    """Where the standard library, this package and other installed ones lie."""
    folders = [os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(__file__))]
    site = sys.modules.get("site")
    if site is not None:
        folders += [*site.getsitepackages(), *filter(None, [site.USER_SITE])]
    return set(map(os.path.realpath, folders))
