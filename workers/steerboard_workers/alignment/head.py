"""Log-probs and entropies of tokens from logits, or from hidden states through the LM head, in float32."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from steerboard_workers.alignment.scratch import Loan, copied

# Logits that exist at once, in elements. Of more rows they are computed by chunks, and again in the backward pass, so
# that those of a long batch under a large vocabulary never exist together. But each chunk reads the head's weights
# again and adds a gradient of their size, so it should have some hundred rows.
CHUNK_ELEMENTS = 1 << 26
CPU_CHUNK_ELEMENTS = 1 << 28
# Logits that stay in a CPU's cache between two passes over them. A GPU takes all at once.
BLOCK_ELEMENTS = 1 << 19


def chunk_rows(vocabulary: int, device: torch.device) -> int:
    """How many rows of logits may exist at once."""
    elements = CPU_CHUNK_ELEMENTS if device.type == "cpu" else CHUNK_ELEMENTS
    return max(1, elements // vocabulary)


def is_plain(head: nn.Module) -> bool:
    """Whether it is one plain product whose weights are here: ZeRO-3's come when the module is called, and hooks and
    adapters would be passed over."""
    return (
        type(head) is nn.Linear
        and not hasattr(head.weight, "ds_id")
        and not head._forward_pre_hooks
        and not head._forward_hooks
    )


def chunks(count: int, rows: int, spread: bool, device: torch.device) -> list[slice]:
    """`count` rows, at most `rows` at a time. `spread`: the weights are spread over processes (ZeRO-3) and gathered at
    each call of the head, in which all take part, so processes with fewer chunks have empty ones at the end."""
    number = max(1, -(-count // rows))
    if spread:
        most = torch.tensor(number, device=device)
        torch.distributed.all_reduce(most, torch.distributed.ReduceOp.MAX)
        number = int(most)
    return [slice(min(at * rows, count), min((at + 1) * rows, count)) for at in range(number)]


def read_logits(logits: Tensor, labels: Tensor, temperature: float = 1.0, entropic: bool = False) -> tuple[Tensor, ...]:
    """Reads softmax(logits / temperature), logits (N, V): log-probs (N,) of the labels (N,), whether no other token is
    likelier (N,), and if `entropic` the entropies (N,).

    torch's cross_entropy makes a float32 copy of bf16 logits, a log softmax and its gradient, each as large as the
    logits: a tenth of an SFT step on a CPU. This reads them a few rows at a time and makes their gradient only.
    """
    log_probs, correct, entropies = _ReadLogits.apply(logits, labels, temperature, entropic)  # type: ignore[no-untyped-call]
    return (log_probs, correct, entropies) if entropic else (log_probs, correct)


def read_head(
    head: nn.Linear, hidden: Tensor, labels: Tensor, temperature: float = 1.0, entropic: bool = False
) -> tuple[Tensor, ...]:
    """The same of `head(hidden)`, hidden (N, width), by chunks where there are many rows. The gradient of the head's
    weights is added up in float32, whatever the logits are in; that of the logits takes their place."""
    rows = chunk_rows(head.out_features, hidden.device)
    log_probs, correct, entropies = _ReadHead.apply(  # type: ignore[no-untyped-call]
        hidden, head.weight, head.bias, labels, temperature, entropic, rows
    )
    return (log_probs, correct, entropies) if entropic else (log_probs, correct)


class _ReadLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, temperature: float, entropic: bool) -> tuple[Tensor, ...]:
        reading = _Reading(len(logits), logits.device, entropic)
        reading.read(logits, labels, temperature)
        ctx.temperature = temperature
        ctx.save_for_backward(logits, labels, reading.normalisers, reading.entropies)
        ctx.mark_non_differentiable(reading.correct)
        return reading.log_probs, reading.correct, reading.entropies

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_log_probs: Tensor, _: Any, of_entropies: Tensor) -> tuple[Tensor | None, ...]:
        logits, labels, normalisers, entropies = ctx.saved_tensors
        out = torch.empty_like(logits)
        _fill_gradient(out, logits, labels, ctx.temperature, normalisers, of_log_probs, entropies, of_entropies)
        return out, None, None, None


class _ReadHead(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        labels: Tensor,
        temperature: float,
        entropic: bool,
        rows: int,
    ) -> tuple[Tensor, ...]:
        device = hidden.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        cast = copied(weight, dtype) if weight.dtype is not dtype else None
        states, matrix = hidden.to(dtype), weight if cast is None else cast.tensor
        shift = None if bias is None else bias.to(dtype)
        reading = _Reading(len(states), states.device, entropic)
        loan = Loan((min(rows, len(states)), len(matrix)), dtype, states.device)
        for part in _parts(len(states), rows):
            chunk = _logits(states[part], matrix, shift, loan.tensor)
            reading.read(chunk, labels[part], temperature, part)
        ctx.temperature, ctx.rows = temperature, rows
        if any(ctx.needs_input_grad):
            # A single chunk stays, and becomes its gradient.
            ctx.loan, ctx.cast = loan if len(states) <= rows else None, cast
            kept = None if cast is not None else weight
            ctx.save_for_backward(states, kept, shift, labels, reading.normalisers, reading.entropies)
        ctx.mark_non_differentiable(reading.correct)
        return reading.log_probs, reading.correct, reading.entropies

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_log_probs: Tensor, _: Any, of_entropies: Tensor) -> tuple[Tensor | None, ...]:
        states, weight, shift, labels, normalisers, entropies = ctx.saved_tensors
        matrix = weight if ctx.cast is None else ctx.cast.tensor
        known = ctx.loan is not None
        loan = ctx.loan or Loan((min(ctx.rows, len(states)), len(matrix)), states.dtype, states.device)
        ctx.loan = None
        of_states = torch.empty_like(states)
        of_matrix: Tensor | None = None
        product = Loan(matrix.shape, matrix.dtype, matrix.device) if ctx.needs_input_grad[1] else None
        of_shift = torch.zeros_like(shift, dtype=torch.float32) if ctx.needs_input_grad[2] else None
        for part in _parts(len(states), ctx.rows):
            chunk = loan.tensor if known else _logits(states[part], matrix, shift, loan.tensor)
            given = (normalisers[part], of_log_probs[part], entropies[part], of_entropies[part])
            _fill_gradient(chunk, chunk, labels[part], ctx.temperature, *given)
            torch.mm(chunk, matrix, out=of_states[part])
            if product is not None:
                torch.mm(chunk.t(), states[part], out=product.tensor)
                if of_matrix is None:
                    of_matrix = product.tensor.to(torch.float32, copy=True)
                else:
                    of_matrix += product.tensor
            if of_shift is not None:
                of_shift += chunk.sum(0, dtype=torch.float32)
        # Autograd gives each the dtype of what it is the gradient of.
        return of_states, of_matrix, of_shift, None, None, None, None


class _Reading:
    """What is read of N rows of logits, each (N,). Without `entropic`, `entropies` has no elements."""

    def __init__(self, count: int, device: torch.device, entropic: bool) -> None:
        self.log_probs, self.normalisers = (torch.empty(count, dtype=torch.float32, device=device) for _ in range(2))
        self.correct = torch.empty(count, dtype=torch.bool, device=device)
        self.entropies = torch.empty(count if entropic else 0, dtype=torch.float32, device=device)

    def read(self, logits: Tensor, labels: Tensor, temperature: float, part: slice | None = None) -> None:
        """`part`: of the rows, which the logits are of."""
        first = 0 if part is None else part.start
        for rows in _parts(len(logits), _block_rows(logits)):
            to = slice(first + rows.start, first + rows.stop)
            block = logits[rows].float()
            block = block if temperature == 1.0 else block / temperature  # bf16 would round once more
            picked = block.gather(1, labels[rows, None]).squeeze(1)
            self.normalisers[to] = block.logsumexp(-1)
            self.log_probs[to] = picked - self.normalisers[to]
            self.correct[to] = picked >= block.amax(-1)
            if len(self.entropies):
                self.entropies[to] = torch.special.entr(block.softmax(-1)).sum(-1)


def _fill_gradient(
    out: Tensor,
    logits: Tensor,
    labels: Tensor,
    temperature: float,
    normalisers: Tensor,
    of_log_probs: Tensor,
    entropies: Tensor,
    of_entropies: Tensor,
) -> None:
    """Writes the gradient with respect to logits z (N, V) at temperature T into `out`, which may be the logits
    themselves: d log pi(y) / d z_v = ([v = y] - pi(v)) / T and d H / d z_v = -pi(v) (log pi(v) + H) / T."""
    for rows in _parts(len(logits), _block_rows(logits)):
        block = out[rows] if out.dtype is torch.float32 else torch.empty_like(out[rows], dtype=torch.float32)
        if temperature == 1.0:
            torch.sub(logits[rows], normalisers[rows, None], out=block)
        else:
            torch.div(logits[rows], temperature, out=block).sub_(normalisers[rows, None])
        chances = block.exp_()
        more = None
        if len(entropies):
            more = (torch.special.entr(chances) - chances * entropies[rows, None]).mul_(of_entropies[rows, None])
        block.mul_(-of_log_probs[rows, None])
        block.scatter_add_(1, labels[rows, None], of_log_probs[rows, None])
        if more is not None:
            block += more
        if temperature != 1.0:
            block /= temperature
        if block.dtype is not out.dtype:
            out[rows] = block


def _logits(states: Tensor, matrix: Tensor, shift: Tensor | None, out: Tensor) -> Tensor:
    """states (n, width), matrix (V, width) -> (n, V), the first rows of `out`."""
    chunk = out[: len(states)]
    if shift is None:
        return torch.mm(states, matrix.t(), out=chunk)
    return torch.addmm(shift, states, matrix.t(), out=chunk)


def _block_rows(logits: Tensor) -> int:
    return max(1, BLOCK_ELEMENTS // logits.shape[1]) if logits.device.type == "cpu" else max(1, len(logits))


def _parts(count: int, rows: int) -> list[slice]:
    return [slice(at, min(at + rows, count)) for at in range(0, count, rows)]
