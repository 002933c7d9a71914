"""Every interpreter of a run loads the driver first, so that forks and deaths are seen from the start."""

import io
import os
import sys

import paper_driver  # noqa: F401


def _start_by(method: str) -> None:
    """Make a start method the one of programs that choose none, which another Python might have another for."""
    from multiprocessing import context

    context._default_context._default_context = context._concrete_contexts[method]  # type: ignore[attr-defined]


if isinstance(sys.stdout, io.TextIOWrapper):
    # A line leaves in one piece, so that those of several processes do not mix; and at once, for what hangs later.
    sys.stdout.reconfigure(line_buffering=True, write_through=False)
if sys.version_info >= (3, 14) and (_method := os.environ.get("PAPER_START_METHOD")):
    _start_by(_method)
