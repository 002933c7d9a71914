"""Axis 3, the DataLoader: where in it the code lives, and how it is iterated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oracle.text import Draft, Lines, block

HOMES = (
    "getitem",
    "getitem_deep",
    "iterable",
    "transform",
    "collate",
    "collate_deep",
    "collate_partial",
    "collate_bound",
    "collate_callable",
    "collate_lambda",
    "collate_nested",
    "worker_init",
    "default_collate",
)
HOLDERS = {"collate_partial": "scale", "collate_bound": "self.scale", "collate_callable": "self.scale"}
HOLDERS["transform"] = "self.scale"


@dataclass(frozen=True)
class Feed:
    """A loader: the statements of its code, what they return, and its options."""

    body: Lines
    returned: str
    home: str
    extra: str
    held: str | None
    tensors: str | None
    workers: int
    options: Sequence[str]
    consume: str
    context: str | None


def render_loader(draft: Draft, feed: Feed) -> tuple[Lines, Lines, Lines]:
    """What main() does before, the creation of the loader, and one pass over it."""
    draft.imports.add("from torch.utils.data import DataLoader")
    setup, options = _code(draft, feed)
    dataset = _dataset(draft, feed)
    options = [f"num_workers={feed.workers}", *feed.options, *options]
    if feed.context:
        options.append(f"multiprocessing_context={feed.context}")
    create = [f"loader = DataLoader({dataset}, batch_size=2, {', '.join(options)})"]
    return setup, create, block("for batch in loader:", _consumed(feed.consume))


def _consumed(consume: str) -> Lines:
    if consume == "cuda":
        return ["print(batch.cuda().sum().item())"]
    return ["print(float(batch.sum()))"] if consume == "sum" else ["print(len(batch))"]


def _dataset(draft: Draft, feed: Feed) -> str:
    if feed.tensors is not None:
        draft.imports.add("from torch.utils.data import TensorDataset")
        return f"TensorDataset({feed.tensors})"
    if feed.home == "iterable":
        return _iterable(draft, feed)
    draft.imports.add("from torch.utils.data import Dataset")
    held = "values" if feed.held else ""
    head = block(f"def __init__(self{', values' if held else ''}{', transform' if feed.home == 'transform' else ''}):",
                 [*(["self.values = values"] if held else []),
                  *(["self.transform = transform"] if feed.home == "transform" else [])])  # fmt: skip
    inside = block("def __getitem__(self, index):", _getitem(draft, feed))
    length = block("def __len__(self):", ["return 4"])
    init = [*head, ""] if held or feed.home == "transform" else []
    draft.define(*block("class Samples(Dataset):", [*init, *length, "", *inside]))
    return f"Samples({', '.join(filter(None, [feed.held, 'transform' if feed.home == 'transform' else None]))})"


def _getitem(draft: Draft, feed: Feed) -> Lines:
    if feed.home == "getitem":
        return [*feed.body, f"return {feed.returned}"]
    if feed.home == "getitem_deep":
        parameters = ["index", *(["values"] if feed.held else [])]
        body = [line.replace("self.values", "values") for line in feed.body]
        draft.define(*block(f"def compute({', '.join(parameters)}):", [*body, f"return {feed.returned}"]))
        draft.define(*block(f"def load({', '.join(parameters)}):", [f"return compute({', '.join(parameters)})"]))
        return [f"return load(index{', self.values' if feed.held else ''})"]
    if feed.home == "transform":
        return ["return self.transform(float(index))"]
    return ["return float(index)"]


def _iterable(draft: Draft, feed: Feed) -> str:
    draft.imports.add("from torch.utils.data import IterableDataset")
    loop = block("for index in range(4):", [*feed.body, f"yield {feed.returned}"])
    init = [*block("def __init__(self, values):", ["self.values = values"]), ""] if feed.held else []
    draft.define(*block("class Samples(IterableDataset):", [*init, *block("def __iter__(self):", loop)]))
    return f"Samples({feed.held or ''})"


def _code(draft: Draft, feed: Feed) -> tuple[Lines, list[str]]:
    """The code that is handed to the loader or to the dataset."""
    body = [*feed.body, f"return {_batch(feed)}"]
    if feed.home == "collate_partial":
        draft.imports.add("import functools")
        draft.define(*block("def collate(scale, samples):", body))
        return [f"collate_fn = functools.partial(collate, {feed.extra})"], ["collate_fn=collate_fn"]
    if feed.home in HOLDERS:
        return _object(draft, feed, body)
    if feed.home == "collate_lambda":
        draft.define(*block("def collate(samples):", body))
        return [], ["collate_fn=lambda samples: collate(samples)"]
    if feed.home == "collate_nested":
        return ["", *block("def collate(samples):", body), ""], ["collate_fn=collate"]
    return _function(draft, feed, body)


def _function(draft: Draft, feed: Feed, body: Lines) -> tuple[Lines, list[str]]:
    if feed.home == "worker_init":
        draft.define(*block("def set_up(worker_id):", feed.body))
        return [], ["worker_init_fn=set_up"]
    if feed.home not in ("collate", "collate_deep"):
        return [], []
    if feed.home == "collate_deep":
        draft.define(*block("def merge(samples):", body))
        body = ["return merge(samples)"]
    draft.define(*block("def collate(samples):", body))
    return [], ["collate_fn=collate"]


def _object(draft: Draft, feed: Feed, body: Lines) -> tuple[Lines, list[str]]:
    init = [*block("def __init__(self, scale):", ["self.scale = scale"]), ""]
    if feed.home == "transform":
        call = block("def __call__(self, sample):", [*feed.body, f"return {feed.returned}"])
        draft.define(*block("class Transform:", [*init, *call]))
        return [f"transform = Transform({feed.extra})"], []
    method = "__call__" if feed.home == "collate_callable" else "collate"
    draft.define(*block("class Collator:", [*init, *block(f"def {method}(self, samples):", body)]))
    name = "collator" if feed.home == "collate_callable" else "collator.collate"
    return [f"collator = Collator({feed.extra})"], [f"collate_fn={name}"]


def _batch(feed: Feed) -> str:
    return "torch.tensor([total])" if feed.returned == "total" else feed.returned
