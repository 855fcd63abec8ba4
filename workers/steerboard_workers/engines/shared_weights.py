"""A model's weights in memory that other processes read: written by the one that trains it, loaded by vLLM's workers.

The memory has no name on any disk, and is gone with the processes that hold it.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

Weights = Callable[[], Iterable[tuple[str, Tensor]]]
"""All tensors of a model, by name. One may be gone when the next is asked for."""

# A tensor begins at a multiple of this many bytes.
_ALIGNMENT = 64


@dataclass(frozen=True)
class Placed:
    """A tensor in the memory. `dtype` is torch's name of it, `offset` in bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class Layout:
    """The place of weights. `path` leads to the memory while the process that wrote it lives."""

    path: str
    tensors: tuple[Placed, ...]

    @property
    def plain(self) -> tuple[str, list[tuple[Any, ...]]]:
        return self.path, [astuple(placed) for placed in self.tensors]

    def read(self) -> Iterator[tuple[str, Tensor]]:
        """Each tensor, on the CPU. A change to one is no one else's."""
        with Path(self.path).open("rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        whole = torch.frombuffer(memory, dtype=torch.uint8)
        for placed in self.tensors:
            yield placed.name, _part(whole, placed)


class SharedWeights:
    """Memory for the weights of one model, of which every `write` has the same shapes."""

    def __init__(self) -> None:
        self._memory: mmap.mmap | None = None
        self._file = os.memfd_create("weights")
        self._layout: Layout | None = None
        self._pinned = False

    def write(self, weights: Weights, dtype: torch.dtype) -> Layout:
        """Copy weights, from whatever device, as `dtype` where they are of floats. `weights` is called once, and twice
        when the memory has to be made."""
        if self._layout is None:
            self._layout = self._allocate(weights(), dtype)
        assert self._memory is not None
        whole = torch.frombuffer(self._memory, dtype=torch.uint8)
        places = {placed.name: placed for placed in self._layout.tensors}
        for name, tensor in weights():
            part = _part(whole, places[name])
            if tensor.is_cuda and not self._pinned:
                self._pinned = True
                _pin(whole, tensor.device)
            # As the processor rounds it would take ten times as long.
            part.copy_(tensor.detach().to(part.dtype))
        return self._layout

    def _allocate(self, weights: Iterable[tuple[str, Tensor]], dtype: torch.dtype) -> Layout:
        placed, end = [], 0
        for name, tensor in weights:
            stored = dtype if tensor.dtype.is_floating_point else tensor.dtype
            entry = Placed(name, str(stored).removeprefix("torch."), tuple(tensor.shape), end)
            placed.append(entry)
            end += -(-_bytes(entry) // _ALIGNMENT) * _ALIGNMENT
        os.ftruncate(self._file, max(end, 1))
        self._memory = mmap.mmap(self._file, 0)
        return Layout(f"/proc/{os.getpid()}/fd/{self._file}", tuple(placed))


class WeightUpdates:
    """What vLLM's workers can do besides (its `worker_extension_cls`)."""

    reload_weights: Any  # the worker's own

    def take_weights(self, path: str, tensors: Sequence[tuple[str, str, Sequence[int], int]]) -> None:
        """Replace all weights, by the names of a checkpoint, in place. What vLLM sends to other
        processes has to be plain: `tensors` are the fields of `Placed`."""
        layout = Layout(path, tuple(Placed(name, dtype, tuple(shape), at) for name, dtype, shape, at in tensors))
        self.reload_weights(weights_iterator=layout.read())


def _pin(whole: Tensor, device: torch.device) -> None:
    """Let GPUs copy into the memory directly, four times as fast. Where the system forbids it, they do without."""
    runtime: Any = torch.cuda.cudart  # untyped
    failed = runtime().cudaHostRegister(whole.data_ptr(), whole.numel(), 0)
    if int(failed):
        with suppress(RuntimeError):
            torch.zeros(1, device=device)  # the next kernel reports the failure as its own


def _bytes(placed: Placed) -> int:
    return int(math.prod(placed.shape) * getattr(torch, placed.dtype).itemsize)


def _part(whole: Tensor, placed: Placed) -> Tensor:
    return whole[placed.offset : placed.offset + _bytes(placed)].view(getattr(torch, placed.dtype)).view(placed.shape)
