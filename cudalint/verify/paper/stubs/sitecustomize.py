"""Every interpreter of a run loads the driver first, so that forks and deaths are seen from the start."""

import paper_driver  # noqa: F401
