"""What the bytes of a file tell: whether it can matter at all, and whether something may start there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cudalint.project.blocks import runs_at_once

_GPU_WORDS = (
    rb"cuda|gpu|GPU|cupy|numba|jax|tensorflow|keras|torch|pycuda|accelerate|transformers|lightning|pytorch_lightning|"
    rb"sentence_transformers|diffusers|timm|spacy|vllm|skorch|deepspeed"
)
_LAUNCH_WORDS = (
    rb"Pool|Process|ProcessPool|ProcessPoolExecutor|ThreadPool|ThreadPoolExecutor|Thread|Parallel|DataLoader|StatefulDataLoader|WebLoader|"
    rb"spawn|start_processes|forkpty|fork|set_start_method|init_process_group|num_proc|notebook_launcher|Trainer|"
    rb"CUDA_VISIBLE_DEVICES|set_default_device|set_default_tensor_type|set_memory_growth|set_visible_devices|"
    rb"init_device_mesh|multiprocessing|multiprocess|billiard|celery|gunicorn|preload_app|wsgi_app|uwsgidecorators|n_jobs|n_process|use_multiprocessing|dataloader_num_workers|"
    rb"process_map|WorkerPool|p_tqdm"
)
_GPU = re.compile(rb"\b(?:" + _GPU_WORDS + rb")\b")
_PROCESS = re.compile(rb"\b(?:" + _LAUNCH_WORDS + rb")\b")
_LAUNCH = re.compile(
    rb"\b(?:ProcessPool|ProcessPoolExecutor|DataLoader|StatefulDataLoader|WebLoader|start_processes|forkpty|set_start_method|init_process_group|"
    rb"num_proc|notebook_launcher|CUDA_VISIBLE_DEVICES|set_default_device|set_default_tensor_type|set_memory_growth|"
    rb"set_visible_devices|init_device_mesh|process_map|WorkerPool|p_tqdm)\b|\b(?:Pool|Process|Parallel|spawn|fork|LLM)\(|\.(?:Pool|Process|Parallel|spawn|fork|LLM)\b|"
    rb"\bimport\b.*\b(?:Pool|Process|Parallel|spawn|fork|LLM)\b|\b(?:ddp_fork\w*|ddp_notebook\w*|DDPStrategy|n_jobs|n_process|use_multiprocessing|dataloader_num_workers|preload_app|wsgi_app|celery|uwsgidecorators)\b"
)
_THREAD = re.compile(rb"\b(?:Thread(?:Pool|PoolExecutor)?|to_thread|run_in_executor)\b")
_SELECTS = re.compile(rb"\bset_device\b|\bselect_device\b|\.use\(\)")
# A device object at the beginning of a line, or under another name. ``torch.device`` is none.
_DEVICE = re.compile(
    rb"(?:^|[:;])[ \t]*(?:(?:\w+\.)*cuda\.)?[dD]evice\(|\bcuda\.[dD]evice[ \t]*(?:$|[,;)\]}#])|"
    rb"\bimport\b.*\b[dD]evice[ \t]+as\b",
    re.MULTILINE,
)
_RENAMED = re.compile(
    rb"\bcuda[ \t]+as[ \t]+\w+|\bimport[ \t]+cupy[ \t]+as\b|\bfrom[ \t]+torch[ \t]+import\b.*\bcuda\b"
)
_OF_RENAMED = re.compile(rb"(?:^|[:;])[ \t]*[\w.]+\.[dD]evice\(|=[ \t]*\w+\.[dD]evice[ \t]*$", re.MULTILINE)
_CUDA = re.compile(rb"\b(?:cuda|cupy)\b")


def may_matter(data: bytes) -> bool:
    """Whether the file mentions CUDA or processes, so that it is worth a look."""
    return _GPU.search(data) is not None or _PROCESS.search(data) is not None


def may_launch(data: bytes) -> bool:
    """Whether something that a rule speaks about may start in the file."""
    if _LAUNCH.search(data) is not None or device_statement(data):
        return True
    return _THREAD.search(data) is not None and _SELECTS.search(data) is not None


def device_statement(data: bytes) -> bool:
    """Whether a line may be a device object as a statement."""
    if b"evice" not in data or (b"cuda" not in data and b"cupy" not in data):
        return False
    if _CUDA.search(data) is None:
        return False
    return _DEVICE.search(data) is not None or (
        _RENAMED.search(data) is not None and _OF_RENAMED.search(data) is not None
    )


_ACTS = re.compile(
    rb"^([ \t]*)(?![ \t#'\")\]}]).*(?:\bcuda\.\w+\(|\.cuda\(|[\"']cuda\b|"
    rb"\b(?:cupy|cp)\.\w+\(|\bcuda\.gpus\b|\bjax\.devices|"
    rb"\.is_available\(|\bjnp\.\w+\(|\btf\.(?:config|constant|Variable|random|keras\.(?:Sequential|Model))\b|"
    rb"\bset_start_method\(|\benviron.*(?:CUDA|NVML|XLA|MASTER)|\bAccelerator\(|\bimport torch_geometric\b|"
    rb"\bcpp_extension\b|\bautoinit\b|\bset_default_(?:device|tensor_type)\()",
    re.MULTILINE,
)


def acts_at_top(data: bytes) -> bool:
    """Whether a line that runs at the import of a file may do something to the process."""
    return any(
        not found[1] or runs_at_once(data, found.start(), len(found[1])) is True for found in _ACTS.finditer(data)
    )


def mentions_gpu(data: bytes) -> bool:
    """Whether the file mentions a GPU framework."""
    return _GPU.search(data) is not None


_PLACES = re.compile(rb"\.cuda\(|\bto\(\s*f?[\"']cuda|\b[dD]evice\w*\s*[=:(,]\s*f?[\"']cuda|CUDA_VISIBLE_DEVICES")


def places_on_gpu(data: bytes) -> bool:
    """Whether the file puts something on a GPU or chooses one, be it of a framework that another file imports."""
    return b"uda" in data and _PLACES.search(data) is not None


_TOP_CALL = re.compile(rb"^(?!(?:def|class|from|import|async)\b|[ \t#'\")\]}])[^#\n]*", re.MULTILINE)
_CALLED = re.compile(rb"(?<![\w.])([A-Za-z_]\w*)(?=\(|\s*$)|\.([A-Za-z_]\w*)(?=\(|\s*$)")
_DEFINED = re.compile(rb"^([ \t]*)(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
_KEEPS = re.compile(rb"\]\s*=[^=]|\.(?:append|add|update|setdefault|insert)\(")
_SPAN = 4_000


@dataclass(frozen=True, slots=True)
class TopCalls:
    """The names that lines of the top level call, and those that they decorate with."""

    called: frozenset[bytes]
    decorating: frozenset[bytes]


def calls_at_top(data: bytes) -> TopCalls:
    """What a file calls when it is imported."""
    called: set[bytes] = set()
    decorating: set[bytes] = set()
    for found in _TOP_CALL.finditer(data):
        line = found.group()
        if line.startswith(b"@"):
            decorating.update(name for names in _CALLED.findall(line) for name in names if name)
        elif b"(" in line:
            called.update(name for names in _CALLED.findall(line) for name in names if name)
    return TopCalls(frozenset(called), frozenset(decorating))


def does_something(data: bytes, calls: TopCalls, *, registers: bool) -> bool:
    """Whether a file defines one of these so that calling it may use a GPU, or as a decorator that keeps what it gets.

    The second matters where the file that decorates ``registers`` GPU code.
    """
    for found in _DEFINED.finditer(data):
        name = found[2]
        if name not in calls.called and name not in calls.decorating:
            continue
        body = _body(data, found.end(), len(found[1]))
        if mentions_gpu(body) or (registers and name in calls.decorating and _KEEPS.search(body) is not None):
            return True
    return False


def _body(data: bytes, start: int, indent: int) -> bytes:
    """The lines of a definition: those that stand deeper than its first one."""
    end = re.compile(rb"^[ \t]{0,%d}[^ \t\r\n#)]" % indent, re.MULTILINE).search(data, start)
    return data[start : min(end.start() if end is not None else len(data), start + _SPAN)]
