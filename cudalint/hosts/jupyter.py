"""How JupyterLab finds the language server: jupyter-lsp asks what is installed beside it."""

from __future__ import annotations

import importlib.util
import sys

# As -m cudalint, but for the folder that Jupyter serves, in which -m would look for modules first.
_SERVER = (
    "import sys; sys.path[:] = [place for place in sys.path if place]; "
    "from cudalint.__main__ import main; sys.exit(main())"
)


def language_servers(_manager: object) -> dict[str, dict[str, object]]:
    """What jupyter-lsp is told of the server; nothing where its extra is not installed."""
    if importlib.util.find_spec("pygls") is None:
        return {}
    return {
        "cudalint": {
            "version": 2,
            "display_name": "cudalint",
            "argv": [sys.executable, "-c", _SERVER, "server"],
            "languages": ["python"],
            "mime_types": ["text/python", "text/x-ipython", "text/x-python"],
        }
    }
