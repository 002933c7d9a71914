"""How files of a repository have modules served: by which names the project tells the machine of it.

A server is named by its command, such as ``gunicorn``, where it makes an application before it forks, and with the
number of its workers behind a colon where each makes it for itself.
"""

from __future__ import annotations

# gunicorn, where a file is its configuration.
CONFIGURES = "gunicorn --config"
# celery's worker, with the kind of pool that it is told behind it; without one its settings name it.
WORKS = "celery worker:"
# Seldon's server, which is told a class.
SELDON = "seldon"
# pytest, where it forks for each test.
FORKED_TESTS = "pytest-forked"
