"""A session for nox."""

import nox


@nox.session
def cudalint(session: nox.Session) -> None:
    """Find where CUDA and processes collide."""
    session.install("cudalint")
    session.run("cudalint", "check", *(session.posargs or ["src"]))
