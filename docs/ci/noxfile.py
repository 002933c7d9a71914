"""A session for nox."""

import nox


@nox.session
def cudalint(session: nox.Session) -> None:
    """Find where CUDA and processes collide."""
    # Where your copy of cudalint's repository lives.
    session.install("cudalint @ git+https://example.org/cudalint@v0.1.0")
    session.run("cudalint", "check", *(session.posargs or ["src"]))
