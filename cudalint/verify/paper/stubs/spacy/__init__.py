"""spaCy on paper: a pipeline that runs on the GPU once one is required, in processes if it is asked to."""

from __future__ import annotations

import multiprocessing
from typing import Any, Iterator

import paper_driver as driver

_gpu = [False]


def require_gpu(gpu_id: int = 0) -> bool:
    """From now on arrays are cupy's."""
    import cupy

    cupy.cuda.Device(gpu_id).use()
    cupy.zeros(1)
    _gpu[0] = True
    return True


def prefer_gpu(gpu_id: int = 0) -> bool:
    """The same where there is a GPU."""
    return require_gpu(gpu_id)


def _run(text: str) -> str:
    if _gpu[0]:
        import cupy

        cupy.ones(len(text) or 1).sum().item()
    return text


def _work(texts: list[str], pipe: Any) -> None:
    try:
        pipe.send([_run(text) for text in texts])
    except Exception as error:  # noqa: BLE001  spaCy sends every error of a worker to its parent
        pipe.send(f"{type(error).__name__}: {error}")


class Language:
    """A pipeline."""

    def __call__(self, text: str) -> str:
        return _run(text)

    def pipe(self, texts: Any, n_process: int = 1, batch_size: int = 1000, **_: Any) -> Iterator[str]:
        """Many texts."""
        listed = list(texts)
        if n_process == 1:
            yield from (_run(text) for text in listed)
            return
        ends, processes = [], []
        for number in range(n_process):
            mine, theirs = multiprocessing.Pipe(False)
            process = multiprocessing.Process(target=_work, args=(listed[number::n_process], theirs), daemon=True)
            process.start()
            ends.append(mine)
            processes.append(process)
        for end in ends:
            found = end.recv()
            if isinstance(found, str):
                raise ValueError(f"[E871] Error encountered in nlp.pipe with multiprocessing:\n\n{found}")
            yield from found
        for process in processes:
            process.join()


def blank(name: str) -> Language:
    """An empty pipeline."""
    return Language()


def load(name: str, **_: Any) -> Language:
    """A trained pipeline."""
    return Language()


__getattr__ = driver.lazy("spacy")
