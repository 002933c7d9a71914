"""torch.nn.utils.rnn."""

from typing import Any

import paper_driver as driver


def pad_sequence(sequences: Any, batch_first: bool = False, padding_value: float = 0.0) -> Any:
    """Sequences of one length."""
    import torch

    longest = max(len(s) for s in sequences)
    rows = []
    for s in sequences:
        row = torch.full((longest, *s.shape[1:]), padding_value, dtype=s.dtype, device=s.device)
        row[: len(s)] = s
        rows.append(row)
    return torch.stack(rows, 0 if batch_first else 1)


__getattr__ = driver.lazy("torch.nn.utils.rnn")
