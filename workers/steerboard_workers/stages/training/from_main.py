"""What the main process alone has read, on every process: others may be on machines without its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor


def from_main(accelerator: Accelerator, value: Any) -> Any:
    if accelerator.num_processes == 1:
        return value
    values = [value]
    torch.distributed.broadcast_object_list(values, src=0)
    return values[0]


def tensors_from_main(accelerator: Accelerator, tensors: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """One at a time. Other processes give none."""
    if accelerator.num_processes == 1:
        yield from tensors
        return
    mine = iter(tensors)
    while described := from_main(accelerator, None if (item := next(mine, None)) is None else (item[0], item[1].shape)):
        name, shape = described
        where = accelerator.device
        tensor = torch.empty(shape, device=where) if item is None else item[1].to(where)
        torch.distributed.broadcast(tensor, src=0)
        yield name, tensor
