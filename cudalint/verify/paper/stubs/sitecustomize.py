"""Every interpreter of a run loads the driver first, so that forks and deaths are seen from the start."""

import io
import sys

import paper_driver  # noqa: F401

if isinstance(sys.stdout, io.TextIOWrapper):
    # A line leaves in one piece, so that those of several processes do not mix; and at once, for what hangs later.
    sys.stdout.reconfigure(line_buffering=True, write_through=False)
