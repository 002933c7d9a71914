"""A session for nox."""

import nox


@nox.session
def cudalint(session: nox.Session) -> None:
    """Find where CUDA and processes collide."""
    session.install("cudalint @ git+https://github.com/cudalint/cudalint@v0.1.0")
    session.run("cudalint", "check", *(session.posargs or ["src"]))
