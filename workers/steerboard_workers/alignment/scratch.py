"""Memory for large tensors that live for a moment, kept by the process.

On a CPU each tensor of more than 32 MiB gets fresh pages from the kernel, which clears them: under a vocabulary of
262,144 a third of a step. An allocator that keeps all it freed is no way out, since tensors of ever other sizes break
its memory up: it grew by a gigabyte a step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

# Smaller ones come from the allocator's heap, which keeps them anyway.
LARGE = 32 << 20


_free: list[Tensor] = []


class Loan:
    """A tensor to write to, whose memory is free for the next one when this object goes."""

    _free = _free

    def __init__(self, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> None:
        needed = math.prod(shape) * dtype.itemsize
        self._whole = _take(needed) if device.type == "cpu" and needed >= LARGE else None
        if self._whole is None:
            self.tensor = torch.empty(shape, dtype=dtype, device=device)
        else:
            self.tensor = self._whole[:needed].view(dtype).view(shape)

    def __del__(self) -> None:
        if self._whole is not None:
            self._free.append(self._whole)


def _take(needed: int) -> Tensor:
    """Bytes: at least `needed`, and at most a quarter more than any ever asked for."""
    enough = [whole for whole in _free if len(whole) >= needed]
    if enough:
        smallest = min(enough, key=len)
        _free[:] = [whole for whole in _free if whole is not smallest]
        return smallest
    _free.clear()  # each is too small, and would only add to the new one
    step = 1 << max(0, needed.bit_length() - 3)
    return torch.empty(-(-needed // step) * step, dtype=torch.uint8)


def copied(tensor: Tensor, dtype: torch.dtype) -> Loan:
    """The tensor, of any shape, in another dtype."""
    loan = Loan(tensor.shape, dtype, tensor.device)
    loan.tensor.copy_(tensor)
    return loan
