"""Servers that import a project before they fork: findings run through their configuration and its application."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from cudalint.config import load
from cudalint.project.analysis import Options, analyse
from cudalint.session import Session
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


FORKS = """
import multiprocessing

import torch


def infer():
    return torch.ones(2, device="cuda").sum().item()


def answer(*given, **named):
    multiprocessing.get_context("fork").Process(target=infer).start()


"""
# Classes that a server makes, what it calls first and then.
COMPONENTS = {
    "litserve.LitAPI": ("setup", "predict"),
    "cog.BasePredictor": ("setup", "predict"),
    "cog.BaseRunner": ("setup", "run"),
    "kserve.Model": ("load", "predict"),
    "mlserver.MLModel": ("load", "predict"),
    "ts.torch_handler.base_handler.BaseHandler": ("initialize", "handle"),
    "ts.torch_handler.vision_handler.VisionHandler": ("initialize", "handle"),
    "ts.torch_handler.text_handler.TextHandler": ("initialize", "handle"),
}


@pytest.mark.parametrize("name", COMPONENTS)
def test_what_a_server_makes_is_begun_before_it_answers(name: str) -> None:
    begin, answers = COMPONENTS[name]
    module, _, base = name.rpartition(".")
    first = f"    def {begin}(self, *given):\n        self.model = torch.nn.Linear(2, 2).cuda()\n\n"
    text = f"from {module} import {base}\n{FORKS}class Ours({base}):\n{first}"
    text += f"    def {answers}(self, *given):\n        answer()\n"
    assert [code for _, code, _, _ in findings(server=text)] == ["CUD101"]


# How a function becomes a handler, in modules that put a model on the GPU.
ROUTES = {
    "flask.Blueprint": "r = flask.Blueprint('r', __name__)\nr.route('/')(answer)",
    "quart.Blueprint": "r = quart.Blueprint('r', __name__)\nr.route('/')(answer)",
    "sanic.Blueprint": "r = sanic.Blueprint('r')\nr.get('/')(answer)",
    "bottle.Bottle": "r = bottle.Bottle()\nr.get('/')(answer)",
    "starlette.applications.Starlette": "r = starlette.applications.Starlette()\nr.route('/')(answer)",
    "litestar.Router": "r = litestar.Router('/')\nr.get('/')(answer)",
    "fastapi.put": "r = fastapi.APIRouter()\nr.put('/')(answer)",
    "fastapi.delete": "r = fastapi.APIRouter()\nr.delete('/')(answer)",
    "fastapi.patch": "r = fastapi.APIRouter()\nr.patch('/')(answer)",
    "fastapi.websocket": "r = fastapi.APIRouter()\nr.websocket('/')(answer)",
    "fastapi.add_api_route": "r = fastapi.FastAPI()\nr.add_api_route('/', answer)",
    "litestar.get": "litestar.get('/')(answer)",
    "litestar.put": "litestar.put('/')(answer)",
    "litestar.patch": "litestar.patch('/')(answer)",
    "litestar.delete": "litestar.delete('/')(answer)",
    "litestar.route": "litestar.route('/')(answer)",
    "litestar.websocket": "litestar.websocket('/')(answer)",
    "aiohttp.web.get": "aiohttp.web.get('/', answer)",
    "aiohttp.web.post": "aiohttp.web.post('/', answer)",
    "aiohttp.web.put": "aiohttp.web.put('/', answer)",
    "aiohttp.web.delete": "aiohttp.web.delete('/', answer)",
    "aiohttp.web.Application.add_get": "aiohttp.web.Application().router.add_get('/', answer)",
    "aiohttp.web.Application.add_put": "aiohttp.web.Application().router.add_put('/', answer)",
    "aiohttp.web.Application.add_delete": "aiohttp.web.Application().router.add_delete('/', answer)",
    "starlette.routing.Route": "starlette.routing.Route('/', answer)",
    "starlette.routing.WebSocketRoute": "starlette.routing.WebSocketRoute('/', answer)",
}


@pytest.mark.parametrize("name", ROUTES)
def test_a_handler_answers_after_its_module_was_imported(name: str) -> None:
    imported = name.rpartition(".")[0].removesuffix(".Application")
    text = f"import {imported}\n{FORKS}model = torch.nn.Linear(2, 2).cuda()\n{ROUTES[name]}\n"
    assert [(code, level) for _, code, level, _ in findings(site=text)] == [("CUD101", "error")]


PRELOADS = {
    "Dockerfile": 'RUN pip install gunicorn\nCMD ["gunicorn", "--preload", "-b", "0.0.0.0:80", \\\n  "site_app:app"]\n',
    "docker/Dockerfile.gpu": "ENTRYPOINT exec /opt/bin/gunicorn -w 2 --preload site_app:app\n",
    "Procfile": "web: gunicorn --preload site_app:app\n",
    "start.sh": "#!/bin/sh\nsleep 1 && gunicorn -w 4 --preload site_app:app & wait\n",
    "docker-compose.yml": "services:\n  web:\n    command: gunicorn --preload site_app:app\n",
    "deploy/site.service": "[Service]\nExecStart=/usr/bin/gunicorn --preload site_app:app\n",
    "scripts/serve.sh": "export GUNICORN_CMD_ARGS='--preload'\ngunicorn site_app:app\n",
    "Makefile": ".PHONY: serve\nserve:\n\t@nohup gunicorn --preload site_app:app &\n",
    "src/justfile": "serve:\n    gunicorn --preload site_app:app\n",
    "backend/docker/entrypoint.sh": "exec poetry run gunicorn --preload site_app:app\n",
    "compose.yaml": "services:\n  web:\n    command: >\n      gunicorn site_app:app\n      -w 2\n      --preload\n",
    "deploy/compose.yml": "services:\n  a:\n    command:\n      - gunicorn\n      - --preload\n      - site_app:app\n",
}


TASKS = {
    "scoring/__init__.py": "",
    "scoring/celery.py": "from celery import Celery\napp = Celery('scoring', include=['scoring.tasks'])\n",
    "scoring/tasks.py": (
        "import torch\nfrom scoring.celery import app\nmodel = torch.nn.Linear(2, 2).cuda()\n"
        "@app.task(bind=True)\ndef score(self, rows):\n    return model(torch.tensor(rows).cuda()).tolist()\n"
    ),
}
WORKERS = {
    "error": [
        {"Procfile": "worker: celery -A scoring worker -c 2\n"},
        {"Dockerfile": 'CMD ["celery", "--app=scoring.celery:app", "worker", "--pool", "prefork"]\n'},
        {"compose.yml": "services:\n  worker:\n    command: celery -A scoring.celery worker -P processes\n"},
        {"Dockerfile": 'CMD ["celery", "--app=scoring.celery.app", "worker", "-P", "prefork"]\n'},
    ],
    "warning": [
        {"Procfile": "worker: celery -A scoring worker -P $POOL\n"},
        {"Procfile": "cpu: celery -A scoring worker -Q cpu\ngpu: celery -A scoring worker -Q gpu -P solo\n"},
        {"Procfile": "worker: celery -A other worker\nbeat: celery -A scoring beat\n"},
    ],
    "": [
        {"Procfile": "worker: celery -A scoring worker -P solo\n"},
        {"start.sh": "exec celery --app scoring worker --pool=threads --concurrency 4\n"},
        {"Dockerfile": "CMD celery -A scoring.celery:app worker -Pgevent\n"},
    ],
}


@pytest.mark.parametrize(("level", "files"), [(level, files) for level in WORKERS for files in WORKERS[level]])
def test_a_command_line_says_which_pool_celery_has(tmp_path: Path, level: str, files: dict[str, str]) -> None:
    for name, text in (TASKS | files).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = Session(load([str(tmp_path)])).check([str(tmp_path)]).findings
    assert [(f.code, f.severity.value) for f in found] == ([("CUD104", level)] if level else [])


def test_a_command_line_of_celery_without_a_pool_leaves_it_to_the_settings(tmp_path: Path) -> None:
    threads = {"scoring/celery.py": f"{TASKS['scoring/celery.py']}app.conf.worker_pool = 'threads'\n"}
    for name, text in (TASKS | threads).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for words, expected in (("", []), (" -P prefork", ["error"])):
        (tmp_path / "Procfile").write_text(f"worker: celery -A scoring worker{words}\n", encoding="utf-8")
        found = Session(load([str(tmp_path)])).check([str(tmp_path)]).findings
        assert [f.severity.value for f in found] == expected


RESERVES = {
    "scoring/celery.py": TASKS["scoring/celery.py"],
    "scoring/tasks.py": (
        "from scoring.celery import app\n"
        "@app.task\ndef score(path):\n    from tensorflow.keras.models import load_model\n"
        "    return load_model(path).summary()\n"
    ),
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (" --concurrency 8", ["CUD206"]),
        (" -c4 -P prefork", ["CUD206"]),
        (" --concurrency=1", []),
        (" -c 8 -P solo", []),
        ("", []),
    ],
)
def test_a_command_line_says_how_many_processes_celery_has(tmp_path: Path, words: str, expected: list[str]) -> None:
    for name, text in (RESERVES | {"Procfile": f"worker: celery -A scoring worker{words}\n"}).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = Session(load([str(tmp_path)])).check([str(tmp_path)]).findings
    assert [f.code for f in found] == expected


UWSGI = {
    "uwsgi.ini": "[uwsgi]\nmodule = site_app:app\nmaster = true\nprocesses = 4\n",
    "deploy/site_uwsgi.ini": "[uwsgi]\nwsgi-file = site_app.py\ncallable = app\nworkers=2\n",
    "Dockerfile": 'CMD ["uwsgi", "--wsgi-file", "site_app.py", \\\n  "--callable", "app", "--processes", "2"]\n',
    "start.sh": "exec uwsgi --socket :1 -w site_app:app -M -p $WORKERS\n",
}


@pytest.mark.parametrize("name", [n for n in PRELOADS if "/" not in n])
def test_a_folder_that_starts_its_server_is_a_project_without_another_mark(tmp_path: Path, name: str) -> None:
    (tmp_path / "site_app.py").write_text(APP.format(top=LOADS), encoding="utf-8")
    assert load([str(tmp_path)]).root is None
    (tmp_path / name).write_text(PRELOADS[name], encoding="utf-8")
    found = Session(load([str(tmp_path)])).check([str(tmp_path)]).findings
    assert [(f.code, f.severity.value) for f in found] == [("CUD104", "error")]


def deployed(folder: Path, top: str, **files: str) -> list[tuple[str, str, str, int]]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    text = APP.format(top=top)
    found = analyse([SourceFile(f"{folder}/site_app.py", text, text.encode())], Options(), root=str(folder)).findings
    return [(f.span.filename.rpartition("/")[2], f.code, f.severity.value, f.span.start.row) for f in found]


@pytest.mark.parametrize("name", PRELOADS)
def test_a_file_of_the_project_has_gunicorn_preload(tmp_path: Path, name: str) -> None:
    assert deployed(tmp_path, LOADS, **{name: PRELOADS[name]}) == [("site_app.py", "CUD104", "error", 5)]
    assert deployed(tmp_path, "print(torch.cuda.device_count())", **{name: PRELOADS[name]}) == []


APART = {
    "docker/Dockerfile": 'CMD ["fastapi", "run", "site_app.py", "--port", "80", "--workers", "4"]\n',
    "Dockerfile": 'CMD ["uvicorn", "site_app:app", "--host", "0.0.0.0", "--workers", "4"]\n',
    "Procfile": "web: granian --interface asgi --workers=4 site_app:app\n",
    "start.sh": "exec uv run gunicorn -w 4 -k uvicorn.workers.UvicornWorker site_app:app\n",
    "deploy/site.service": "[Service]\nExecStart=/usr/bin/hypercorn -w 2 site_app:app\n",
    "docker-compose.yml": "services:\n  web:\n    command:\n    - gunicorn\n    - -w\n    - '4'\n    - site_app:app\n",
    "k8s/web-deployment.yaml": (
        "kind: Service\n---\nkind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n"
        "      - command: [uvicorn]\n        args: [--workers, '4', site_app:app]\n"
    ),
    "web.Dockerfile": 'ENV WEB_CONCURRENCY=4\nCMD ["uvicorn", "site_app:app"]\n',
    "old.Dockerfile": 'ENV WEB_CONCURRENCY 4\nCMD ["fastapi", "run", "site_app.py"]\n',
    "Procfile.web": "web: WEB_CONCURRENCY=3 gunicorn site_app:app\n",
    "run.sh": 'export WEB_CONCURRENCY="3"\nexec gunicorn -k uvicorn.workers.UvicornWorker site_app:app\n',
    "site.service": "[Service]\nEnvironment=WEB_CONCURRENCY=2\nExecStart=/usr/bin/uvicorn site_app:app\n",
    "compose.yaml": (
        "services:\n  web:\n    command: uvicorn site_app:app\n    environment:\n      WEB_CONCURRENCY: '4'\n"
    ),
    "compose.gpu.yml": (
        "services:\n  web:\n    command: gunicorn site_app:app\n    environment:\n    - WEB_CONCURRENCY=4\n"
    ),
    "k8s/statefulset.yaml": (
        "kind: StatefulSet\nspec:\n  template:\n    spec:\n      containers:\n"
        "      - command: [uvicorn, site_app:app]\n"
        "        env:\n        - name: WEB_CONCURRENCY\n          value: '4'\n"
    ),
}
ALONE = {
    "docker/Dockerfile": "RUN pip install fastapi\nCMD fastapi run site_app.py\n",
    "serve.sh": "fastapi dev site_app.py --workers 4\nfastapi run other.py --workers 4\n",
    "Dockerfile": 'CMD ["uvicorn", "site_app:app", "--workers", "1"]\n',
    "Procfile": "web: granian --workers $WORKERS site_app:app\n",
    "start.sh": "gunicorn --threads 4 -w ${WORKERS:-4} site_app:app\n",
    "docker-compose.yml": "services:\n  web:\n    command: uvicorn other:app --workers 4\n",
    "web.Dockerfile": 'ENV WEB_CONCURRENCY=1\nCMD ["uvicorn", "site_app:app"]\n',
    "old.Dockerfile": '# ENV WEB_CONCURRENCY=4\nCMD ["uvicorn", "site_app:app"]\n',
    "Procfile.web": "web: WEB_CONCURRENCY=3 gunicorn --workers 1 site_app:app\n",
    "run.sh": "export WEB_CONCURRENCY=3\nhypercorn site_app:app\n",
    "site.service": "[Service]\nEnvironment=WEB_CONCURRENCY=%i\nExecStart=/usr/bin/uvicorn site_app:app\n",
    "compose.yaml": (
        "services:\n  a:\n    command: gunicorn site_app:app\n    environment: {WEB_CONCURRENCY: 1}\n"
        "  b:\n    command: gunicorn other:app\n    environment:\n      WEB_CONCURRENCY: 4\n"
    ),
    "compose.gpu.yml": (
        "services:\n  web:\n    command: gunicorn -c conf.py site_app:app\n    environment:\n    - WEB_CONCURRENCY=4\n"
    ),
    "k8s/web-deployment.yaml": "command: [uvicorn]\nargs: [--workers, {{ .Values.workers }}, site_app:app]\n",
}


@pytest.mark.parametrize("name", APART)
def test_a_file_of_the_project_starts_workers_that_each_make_the_application(tmp_path: Path, name: str) -> None:
    assert deployed(tmp_path, LOADS, **{name: APART[name]}) == [("site_app.py", "CUD201", "warning", 5)]


@pytest.mark.parametrize("name", ALONE)
def test_no_file_starts_several_workers_for_certain(tmp_path: Path, name: str) -> None:
    assert deployed(tmp_path, LOADS, **{name: ALONE[name]}) == []


def test_a_command_of_several_rows_of_yaml_is_one(tmp_path: Path) -> None:
    text = "services:\n  web:\n    command: >\n      gunicorn site_app:app\n      --preload -w 4\n"
    assert deployed(tmp_path, LOADS, **{"compose.yaml": text}) == [("site_app.py", "CUD104", "error", 5)]


WALKS = """\
import importlib
import pkgutil
import apis
from fastapi import FastAPI
app = FastAPI()
def load(package):
    if isinstance(package, str):
        package = importlib.import_module(package)
    for _, name, is_package in pkgutil.walk_packages(package.__path__):
        path = f"{package.__name__}.{name}"
        importlib.import_module(path)
        if is_package:
            load(path)
load("apis")
"""


def test_an_application_that_walks_through_a_package_imports_what_lies_deep_in_it(tmp_path: Path) -> None:
    # gladiaio/gladia#507
    for folder in ("apis", "apis/image", "apis/image/text"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("", encoding="utf-8")
    model = "import torch\nMODEL = torch.nn.Linear(3, 4).cuda()\n"
    (tmp_path / "apis/image/text/classify.py").write_text(model, encoding="utf-8")
    (tmp_path / "main.py").write_text(WALKS, encoding="utf-8")
    (tmp_path / "serve.sh").write_text("#!/bin/bash\ngunicorn main:app --workers 4\n", encoding="utf-8")
    found = Session(load([str(tmp_path)])).check([str(tmp_path)]).findings
    assert [(f.code, f.span.start.row) for f in found] == [("CUD201", 5)]


BOUND = {
    5: "if __name__ == '__main__':\n    app = None\nelse:\n    app = site_app.app\n",
    2: "from site_app import app\n",
    3: "try:\n    app = site_app.app\nexcept AttributeError:\n    raise\n",
}


@pytest.mark.parametrize("row", BOUND)
def test_a_server_preloads_what_a_module_binds_where_it_is_imported(tmp_path: Path, row: int) -> None:
    (tmp_path / "Procfile").write_text("web: gunicorn --preload wsgi:app\n", encoding="utf-8")
    (tmp_path / "site_app.py").write_text(APP.format(top=LOADS), encoding="utf-8")
    (tmp_path / "wsgi.py").write_text(f"import site_app\n{BOUND[row]}", encoding="utf-8")
    found = Session(load([str(tmp_path)])).check([str(tmp_path)]).findings
    places = [(f.code, f.severity.value, os.path.basename(f.span.filename), f.span.start.row) for f in found]
    assert places == [("CUD104", "error", "wsgi.py", row)]


@pytest.mark.parametrize(
    "files",
    [
        {"Dockerfile": 'CMD ["gunicorn", "-w", "1", "site_app:app"]\n'},
        {"Dockerfile": "# gunicorn --preload site_app:app\nCMD gunicorn site_app:app\n"},
        {"Dockerfile": "CMD gunicorn --preload other:app\n"},
        {"Dockerfile": "CMD gunicorn --preload site_app:app\n", "Procfile": "web: gunicorn site_app:app\n"},
        {"start.sh": "gunicorn site_app:app && ./warm --preload\n"},
        {"notes.txt": "gunicorn --preload site_app:app\n"},
        {"Makefile": "serve:\n\t@echo gunicorn --preload site_app:app\n"},
        {".hidden/start.sh": "gunicorn --preload site_app:app\n"},
        {"a/b/c/start.sh": "gunicorn --preload site_app:app\n"},
        {"compose.yml": "services:\n  a:\n    command: >\n      gunicorn site_app:app\n  b:\n    args: --preload\n"},
        {"compose.yml": "services:\n  a:\n    command: [gunicorn, 'site_app:app']\n    build: {args: [--preload]}\n"},
        {"Procfile": "\xff"},
    ],
)
def test_no_file_has_gunicorn_preload_it_always(tmp_path: Path, files: dict[str, str]) -> None:
    assert deployed(tmp_path, LOADS, **files) == []


@pytest.mark.parametrize("name", UWSGI)
def test_uwsgi_makes_the_application_before_it_forks(tmp_path: Path, name: str) -> None:
    assert deployed(tmp_path, LOADS, **{name: UWSGI[name]}) == [("site_app.py", "CUD104", "error", 5)]
    assert deployed(tmp_path, "print(torch.cuda.device_count())", **{name: UWSGI[name]}) == []


@pytest.mark.parametrize(
    "files",
    [
        {"uwsgi.ini": "[uwsgi]\nmodule = site_app:app\nmaster = true\nlazy-apps = true\n"},
        {"uwsgi.ini": "[uwsgi]\nmodule = site_app:app\n"},
        {"uwsgi.ini": "[uwsgi]\nmodule = site_app:app\nmaster = false\nprocesses = 1\n"},
        {"uwsgi.ini": "[uwsgi]\nmodule = other:app\nmaster = true\n"},
        {"uwsgi.ini": "[uwsgi]\n; module = site_app:app\nmaster = true\n"},
        {"Dockerfile": "CMD uwsgi -w site_app:app -p 4 --lazy-apps\n"},
        {"Dockerfile": "CMD uwsgi -w site_app:app -p 4\n", "uwsgi.ini": UWSGI["uwsgi.ini"] + "lazy = true\n"},
        {"settings.ini": UWSGI["uwsgi.ini"]},
    ],
)
def test_uwsgi_loads_in_each_worker_or_has_none(tmp_path: Path, files: dict[str, str]) -> None:
    assert deployed(tmp_path, LOADS, **files) == []


def test_a_factory_that_is_preloaded(tmp_path: Path) -> None:
    (tmp_path / "Procfile").write_text('web: gunicorn --preload "site:create()"\n', encoding="utf-8")
    text = (
        "import torch\nfrom flask import Flask\n\n\ndef create():\n    app = Flask(__name__)\n"
        "    model = torch.nn.Linear(2, 1).cuda()\n\n    @app.route('/')\n    def root():\n"
        "        return str(model(torch.ones(2).cuda()))\n\n    return app\n"
    )
    found = analyse([SourceFile(f"{tmp_path}/site.py", text, text.encode())], Options(), root=str(tmp_path)).findings
    assert [(f.code, f.severity.value) for f in found] == [("CUD104", "error")]


SELDON = {
    "Dockerfile": "ENV MODEL_NAME Model\nCMD exec seldon-core-microservice $MODEL_NAME --service-type MODEL\n",
    "scripts/serve.sh": "seldon-core-microservice Model --service-type MODEL --workers 1\n",
    ".s2i/environment": "MODEL_NAME=Model\nAPI_TYPE=REST\nSERVICE_TYPE=MODEL\n",
}
SERVED = """
import torch


class Model:
    def {where}(self):
        self.net = torch.nn.Linear(1, 1).cuda()

    def predict(self, X, features_names=None):
        return self.net(torch.tensor(X).cuda()).tolist()
"""


@pytest.mark.parametrize("name", SELDON)
def test_seldon_makes_its_component_before_it_forks(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(SELDON[name], encoding="utf-8")
    found = {where: served_by_seldon(tmp_path, SERVED.format(where=where)) for where in ("__init__", "load")}
    assert found == {"__init__": [("CUD104", "error", 9)], "load": []}


def test_what_seldon_is_not_told_to_serve(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("# seldon-core-microservice Model\n", encoding="utf-8")
    text = "seldon-core-microservice $1 && seldon-core-microservice Other\n"
    (tmp_path / "serve.sh").write_text(text, encoding="utf-8")
    assert served_by_seldon(tmp_path, SERVED.format(where="__init__")) == []


def served_by_seldon(folder: Path, text: str) -> list[tuple[str, str, int]]:
    found = analyse([SourceFile(f"{folder}/Model.py", text, text.encode())], Options(), root=str(folder)).findings
    return [(f.code, f.severity.value, f.span.start.row) for f in found]


HOOKED = "import torch\n\n\ndef on_starting(server):\n    torch.cuda.synchronize()\n"
FACTORY = """
import torch
from fastapi import FastAPI


def {name}({given}):
    app = FastAPI()

    @app.get("/")
    def root():
        return torch.ones(2, device="cuda").sum().item()

    return app
"""


@pytest.mark.parametrize(
    ("command", "made"),
    [
        ("gunicorn -c src/gunicorn.conf.py src.server:get_app", "get_app"),
        ("exec gunicorn --config=file:/app/src/gunicorn.conf.py 'server:get_app()'", "get_app"),
    ],
)
def test_a_configuration_serves_what_the_command_line_names(tmp_path: Path, command: str, made: str) -> None:
    found = configured(tmp_path, command, FACTORY.format(name=made, given=""))
    assert found == [("gunicorn.conf.py", "CUD104", "error", 4)]


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("gunicorn -c other.conf.py src.server:get_app", FACTORY.format(name="get_app", given="")),
        ("gunicorn -c src/gunicorn.conf.py src.server:other", FACTORY.format(name="get_app", given="")),
        ("gunicorn -c src/gunicorn.conf.py src.server:get_app", FACTORY.format(name="get_app", given="environ, start")),
    ],
)
def test_what_a_configuration_does_not_serve(tmp_path: Path, command: str, text: str) -> None:
    assert configured(tmp_path, command, text) == []


def configured(folder: Path, command: str, server: str) -> list[tuple[str, str, str, int]]:
    (folder / "src").mkdir()
    for name, text in {"gunicorn.conf.py": HOOKED, "server.py": server, "start.sh": f"{command}\n"}.items():
        (folder / "src" / name).write_text(text, encoding="utf-8")
    found = Session(load([str(folder)])).check([str(folder)]).findings
    return [(os.path.basename(f.span.filename), f.code, f.severity.value, f.span.start.row) for f in found]


FORKED = {
    "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-ra --forked"\n',
    "pytest.ini": "[pytest]\naddopts =\n    -ra\n    --forked\n",
    "setup.cfg": "[tool:pytest]\naddopts = --boxed -q\n",
}
TESTS = """
import torch

{top}


def test_sum():
    assert torch.ones(2, device="cuda").sum() == 2


def helper():
    torch.zeros(1).cuda()
"""


@pytest.mark.parametrize("name", FORKED)
def test_pytest_forks_for_each_test_where_its_settings_say_so(tmp_path: Path, name: str) -> None:
    assert under_pytest(tmp_path, LOADS) == []
    (tmp_path / name).write_text(FORKED[name], encoding="utf-8")
    assert under_pytest(tmp_path, LOADS) == [("CUD104", "error", 7)]
    assert under_pytest(tmp_path, "") == []


IN_CLASSES = """
import unittest

import torch

{top}


class TestSums:
    def test_sum(self, tmp_path):
        assert torch.ones(2, device="cuda").sum() == 2

    def helper(self):
        torch.zeros(1).cuda()


class Others(unittest.TestCase):
    def setUp(self):
        self.ones = torch.ones(2, device="cuda")

    def test_other(self):
        print(self)


class Helpers:
    def test_nothing(self):
        torch.zeros(1).cuda()
"""


def test_pytest_forks_for_the_tests_of_classes_too(tmp_path: Path) -> None:
    (tmp_path / "setup.cfg").write_text(FORKED["setup.cfg"], encoding="utf-8")
    found = [("CUD104", "error", 10), ("CUD104", "error", 21)]
    assert under_pytest(tmp_path, LOADS, IN_CLASSES) == found
    assert under_pytest(tmp_path, "", IN_CLASSES) == []


def test_pytest_that_is_told_otherwise_first(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -ra\n", encoding="utf-8")
    (tmp_path / "setup.cfg").write_text(FORKED["setup.cfg"], encoding="utf-8")
    assert under_pytest(tmp_path, LOADS) == []


def test_pytest_imports_the_conftests_above_a_test_before_it_forks(tmp_path: Path) -> None:
    (tmp_path / "setup.cfg").write_text(FORKED["setup.cfg"], encoding="utf-8")
    asks = {"conftest.py": "import torch\n\nHAS_GPU = torch.cuda.is_available()\n"}
    assert under_pytest(tmp_path, "", files=asks) == [("CUD104", "error", 7)]
    assert under_pytest(tmp_path, "", files={"other/conftest.py": asks["conftest.py"]}) == []
    assert under_pytest(tmp_path, "", files={"conftest.py": "import torch\n"}) == []


@pytest.mark.parametrize("hook", ["pytest_configure", "pytest_collection_modifyitems"])
def test_pytest_calls_the_hooks_of_conftests_before_it_forks(tmp_path: Path, hook: str) -> None:
    (tmp_path / "setup.cfg").write_text(FORKED["setup.cfg"], encoding="utf-8")
    hooks = f"import torch\n\n\ndef {hook}(config):\n    config.gpu = torch.cuda.{{}}()\n"
    asks, counts = ({"conftest.py": hooks.format(name)} for name in ("is_available", "device_count"))
    assert under_pytest(tmp_path, "", files=asks) == [("CUD104", "error", 7)]
    assert under_pytest(tmp_path, "", files=counts) == []


def test_pytest_takes_the_settings_that_lie_nearest_above_a_test(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    (tests / "unit").mkdir(parents=True)
    (tests / "pytest.ini").write_text(FORKED["pytest.ini"], encoding="utf-8")
    assert under_pytest(tmp_path, LOADS) == []
    assert under_pytest(tests, LOADS, root=tmp_path) == [("CUD104", "error", 7)]
    assert under_pytest(tests / "unit", LOADS, root=tmp_path) == [("CUD104", "error", 7)]
    (tests / "unit" / "pytest.ini").write_text("[pytest]\naddopts = -ra\n", encoding="utf-8")
    assert under_pytest(tests / "unit", LOADS, root=tmp_path) == []


def under_pytest(
    folder: Path, top: str, tests: str = TESTS, files: Mapping[str, str] | None = None, root: Path | None = None
) -> list[tuple[str, str, int]]:
    given = {"test_sums.py": tests.format(top=top), **(files or {})}
    sources = [SourceFile(f"{folder}/{name}", text, text.encode()) for name, text in given.items()]
    found = analyse(sources, Options(), root=str(root or folder)).findings
    return [(f.code, f.severity.value, f.span.start.row) for f in found]
