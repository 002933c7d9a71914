"""# fork-launcher-after-cuda (CUD104)

A library or server that forks its workers by itself is started after CUDA was touched, and the workers use CUDA.

## What it does
Some launchers fork without the word appearing in your code. The rule knows them and reports their call when the
parent has initialised or queried CUDA before and the launched function uses it:

- `accelerate.notebook_launcher(...)`
- Lightning with `strategy="ddp_fork"` or `"ddp_notebook"`
- `Dataset.map(..., num_proc=n)` and `.filter(..., num_proc=n)` of Hugging Face datasets, for n of 1 and more
- `fit(...)` of Keras with a dataset that reads its batches in worker processes
- spaCy's `nlp.pipe(..., n_process=n)` after `spacy.require_gpu()`
- gunicorn with `preload_app` or a hook of its master that uses CUDA, celery's prefork pool, uwsgi, tasks of Airflow 2, tools of promptflow

celery, uwsgi and Airflow are usually started from outside. Then the module that they import is what is looked at, and
the finding is a warning: a pool of threads, `lazy-apps`, or a version that reads DAGs in the child cannot be seen.

## Why it is bad
It is the failure of CUD101, `Cannot re-initialize CUDA in forked subprocess`, with two differences.

First, the usual cure does not reach it. `multiprocessing.set_start_method("spawn")` changes nothing for datasets
(it uses `multiprocess`, a package with a default of its own), gunicorn, celery (billiard) or uwsgi.

Second, it often shows late: a server that preloads a model on the GPU starts well, and then every request fails.

The exception that arrives is that of the launcher: `ChildFailedError` from accelerate, `ProcessRaisedException`
from Lightning, with the `RuntimeError` somewhere in the text below it. Other versions look before they fork and
refuse, with words such as "To launch a multi-GPU training from your notebook, you need to avoid running any
instruction using `torch.cuda` in any cell" or "Lightning can't create new processes if CUDA is already
initialized".

## What hardware showed
H200, driver 580, torch 2.11, Python 3.12, accelerate 1.15, lightning 2.6, datasets 5.2.

| launcher, after CUDA | outcome |
| --- | --- |
| `notebook_launcher`, also after a mere `torch.cuda.is_available()` | the ranks fail |
| Lightning `ddp_fork`, `ddp_notebook` | the ranks fail |
| Lightning `ddp_fork` after `torch.cuda.is_available()` only | works: its import makes this question harmless |
| Lightning `ddp_spawn` | works |
| `Dataset.map(num_proc=1)` and more, function or captured model on CUDA | `RuntimeError` |
| the same after `multiprocess.set_start_method("spawn")` | works |
| gunicorn `--preload`, a model on the GPU at module level | every request fails |
| gunicorn without preload | works: each worker imports the application after its fork |
| celery prefork, a model on the GPU at module level | `RuntimeError` in the task; `-P solo` works |

## Example
```python
import torch
from accelerate import Accelerator, notebook_launcher


def train():
    accelerator = Accelerator()
    model = torch.nn.Linear(8, 1).to(accelerator.device)
    print(accelerator.process_index, model.weight.device)


if __name__ == "__main__":
    print("training on", torch.cuda.get_device_name(0))
    notebook_launcher(train, num_processes=2)
```

## Use instead
```python
import torch
from accelerate import Accelerator, notebook_launcher


def train():
    accelerator = Accelerator()
    print("training on", torch.cuda.get_device_name(accelerator.device))
    model = torch.nn.Linear(8, 1).to(accelerator.device)
    print(accelerator.process_index, model.weight.device)


if __name__ == "__main__":
    notebook_launcher(train, num_processes=2)
```

## Fix
**Unsafe** where the launcher has a switch: `device_count() > 0` for a parent that merely asked `is_available()`,
`ddp_spawn` for Lightning's `ddp_fork` and `ddp_notebook` wherever the trainer gets the word from,
`multiprocess.set_start_method("spawn")` at the top of the main guard for datasets, `preload_app` off for gunicorn, and
celery's `worker_process_init` for a handler of `worker_init`.

**Display** for the others: CUDA moves into the function that `notebook_launcher` launches, and models are loaded
after the fork (celery's `worker_process_init`, gunicorn's `post_fork`, uwsgi's `lazy-apps`).

## When it stays silent
- CUDA is touched in the launched function only, or the parent asks no more than `torch.cuda.device_count()`; with
  Lightning imported before, `torch.cuda.is_available()` too.
- `num_proc` is absent or None: the function runs in the same process.
- The function that `map` calls works on the CPU.
- gunicorn without preload, `ddp_spawn`, celery with `-P solo` or `-P threads`, or such a `worker_pool` setting.
- The model is made where the worker begins: `worker_process_init` of celery, `post_fork` and `post_worker_init` of
  gunicorn, `postfork` of uwsgi.
- The Keras dataset uses numpy alone; spaCy runs on the CPU.

## References
- [accelerate: launching from a notebook](https://huggingface.co/docs/accelerate/basic_tutorials/notebook)
- [datasets: map with a GPU](https://huggingface.co/docs/datasets/process#multiprocessing)
- [gunicorn: preload_app](https://docs.gunicorn.org/en/stable/settings.html#preload-app)
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD104",
    name="fork-launcher-after-cuda",
    severity=Severity.ERROR,
    summary="a library or server that forks inside is started after CUDA was touched, and its workers use CUDA",
    outcomes={
        Kind.FORK_LAUNCHER: "{launcher} forks workers that use CUDA ({subject}) after CUDA was used in this process",
    },
    repair=RepairLevel.SOMETIMES,
)
