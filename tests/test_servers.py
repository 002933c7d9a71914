"""Servers that import a project before they fork: findings run through their configuration and its application."""

from __future__ import annotations

import pytest

from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile

APP = """
import torch
from flask import Flask

app = Flask(__name__)
{top}


@app.route("/")
def root():
    return str(torch.ones(2, device="cuda").sum().item())
"""
LOADS = "model = torch.nn.Linear(2, 1).cuda()"
POSTFORK = """
import torch
from uwsgidecorators import postfork

{top}


@postfork
def load():
    global table
    table = torch.zeros(2, device="cuda")


def application(environ, start_response):
    return [str(table.sum().item())]
"""


def findings(**files: str) -> list[tuple[str, str, str, int]]:
    sources = [SourceFile(f"/project/{name}.py", text, text.encode()) for name, text in files.items()]
    found = analyse(sources, Options()).findings
    return [(f.span.filename.rpartition("/")[2], f.code, f.severity.value, f.span.start.row) for f in found]


def test_gunicorn_preloads_an_application_that_takes_the_gpu() -> None:
    conf = 'bind = ":80"\npreload_app = True\nwsgi_app = "site_app:app"\n'
    assert findings(gunicorn_conf=conf, site_app=APP.format(top=LOADS)) == [("gunicorn_conf.py", "CUD104", "error", 2)]


@pytest.mark.parametrize(
    ("conf", "top"),
    [
        ('wsgi_app = "site_app:app"\n', LOADS),
        ('preload_app = False\nwsgi_app = "site_app:app"\n', LOADS),
        ('preload_app = True\nwsgi_app = "site_app:app"\n', "print(torch.cuda.device_count())"),
        ('preload_app = True\nwsgi_app = "other:app"\n', LOADS),
    ],
)
def test_gunicorn_whose_workers_find_a_clean_driver(conf: str, top: str) -> None:
    assert findings(gunicorn_conf=conf, site_app=APP.format(top=top)) == []


def test_a_hook_of_the_master_is_as_bad_as_preloading() -> None:
    conf = 'import torch\nwsgi_app = "site_app:app"\n\n\ndef when_ready(server):\n    torch.cuda.synchronize()\n'
    assert findings(gunicorn_conf=conf, site_app=APP.format(top="")) == [("gunicorn_conf.py", "CUD104", "error", 5)]


def test_uwsgi_imports_before_it_forks_unless_it_is_lazy() -> None:
    assert findings(wsgi=POSTFORK.format(top="")) == []
    assert findings(wsgi=POSTFORK.format(top=LOADS)) == [("wsgi.py", "CUD104", "warning", 14)]


def test_a_celery_pool_that_does_not_fork_is_no_matter() -> None:
    tasks = (
        "import torch\nfrom celery import Celery\n\napp = Celery('x')\n{setting}\ntorch.cuda.init()\n\n\n"
        "@app.task\ndef work(n):\n    return torch.ones(n, device='cuda').sum().item()\n"
    )
    assert findings(tasks=tasks.format(setting="")) == [("tasks.py", "CUD104", "warning", 9)]
    assert findings(tasks=tasks.format(setting="app.conf.worker_pool = 'threads'")) == []
    assert findings(tasks=tasks.format(setting="app.conf.update(worker_pool='solo')")) == []


def test_a_module_that_only_calls_tasks_is_not_what_celery_imports() -> None:
    tasks = (
        "import torch\nfrom celery import Celery\n\napp = Celery('x')\n\n\n"
        "@app.task\ndef work(n):\n    return torch.ones(n, device='cuda').sum().item()\n"
    )
    head = "import torch\nfrom celery.result import AsyncResult\nfrom tasks import work\n"
    api = head + "\ntorch.cuda.init()\nwork.delay(3)\n"
    assert findings(tasks=tasks, api=api) == []
