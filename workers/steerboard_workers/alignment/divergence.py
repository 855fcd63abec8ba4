"""Divergences of two models' distributions over the next token, from their logits over the whole vocabulary.

With the teacher's p, the student's q and their mixture m = beta p + (1 - beta) q, Eq. 1 of arXiv 2306.13649 is

    JSD(beta) = beta KL(p || m) + (1 - beta) KL(q || m)

whose limits, over beta at 0 and over 1 - beta at 1, are the forward KL(p || q) and the reverse KL(q || p).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from steerboard_workers.alignment.head import BLOCK_ELEMENTS

# Logits of each model that exist at once, in elements, and float32 copies of them.
CHUNK_ELEMENTS = 1 << 25

Logits = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Comparison:
    """The distributions that a module's forward compares its own with: `logits` makes those (n, V) of rows of `states`
    (N, width), one for each place that is read. `beta` as in Eq. 1, 0 for the forward KL and 1 for the reverse one."""

    states: Tensor
    logits: Logits
    beta: float


class Compared(NamedTuple):
    """Each (N,): log-probs of the labels under the student, whether no other token is likelier, the divergence, the
    entropies of student and teacher in nats, and whether the likeliest token is the same. Only log-probs and
    divergences have a gradient."""

    log_probs: Tensor
    correct: Tensor
    divergences: Tensor
    entropies: Tensor
    teacher_entropies: Tensor
    agrees: Tensor


def comparison_rows(vocabulary: int) -> int:
    """How many rows of both models' logits may exist at once."""
    return max(1, CHUNK_ELEMENTS // vocabulary)


def compare(
    logits: Logits, states: Tensor, labels: Tensor, with_: Comparison, temperature: float, chunks: Sequence[slice]
) -> Compared:
    """Reads softmax(logits / temperature) of the student's `states` (N, width) and the teacher's, by `chunks` of rows
    whose logits are made again in the backward pass: those of a long batch never exist together."""

    def part(some: Tensor, theirs: Tensor, wanted: Tensor) -> tuple[Tensor, ...]:
        with torch.no_grad():
            of_teacher = with_.logits(theirs)
        return read(logits(some), of_teacher, wanted, with_.beta, temperature)

    if len(chunks) == 1:
        return Compared(*part(states, with_.states, labels))
    parts = [checkpoint(part, states[rows], with_.states[rows], labels[rows], use_reentrant=False) for rows in chunks]
    return Compared(*(torch.cat(values) for values in zip(*parts, strict=True)))


def read(student: Tensor, teacher: Tensor, labels: Tensor, beta: float, temperature: float = 1.0) -> Compared:
    """`compare` of logits (N, V) of both. Rows of the larger head beyond the smaller one's are left out: they pad the
    vocabulary, and no text has such a token."""
    shared = min(student.shape[1], teacher.shape[1])
    student, teacher = student[:, :shared], teacher[:, :shared]
    return Compared(*_Read.apply(student, teacher, labels, beta, temperature))  # type: ignore[no-untyped-call]


class _Read(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, student: Tensor, teacher: Tensor, labels: Tensor, beta: float, temperature: float
    ) -> tuple[Tensor, ...]:
        n, device = len(student), student.device
        log_probs, divergences, entropies, of_teacher = (
            torch.empty(n, dtype=torch.float32, device=device) for _ in range(4)
        )
        correct, agrees = (torch.empty(n, dtype=torch.bool, device=device) for _ in range(2))
        for rows in _blocks(student):
            log_q, log_p = (_log_softmax(logits[rows], temperature) for logits in (student, teacher))
            q, p = log_q.exp(), log_p.exp()
            picked = log_q.gather(1, labels[rows, None]).squeeze(1)
            log_probs[rows], correct[rows] = picked, picked >= log_q.amax(-1)
            entropies[rows], of_teacher[rows] = -(q * log_q).sum(-1), -(p * log_p).sum(-1)
            agrees[rows] = log_q.argmax(-1) == log_p.argmax(-1)
            divergences[rows] = _divergence(q, log_q, p, log_p, beta)
        ctx.beta, ctx.temperature = beta, temperature
        ctx.save_for_backward(student, teacher, labels)
        ctx.mark_non_differentiable(correct, entropies, of_teacher, agrees)
        return log_probs, correct, divergences, entropies, of_teacher, agrees

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_log_probs: Tensor, _: Any, of_divergences: Tensor, *__: Any) -> tuple[Tensor | None, ...]:
        """d log q(y) / d z_v = ([v = y] - q(v)) / T; and with g(v) = dD / dq(v) up to what is equal for all v, d D /
        d z_v = q(v) (g(v) - sum_u q(u) g(u)) / T."""
        student, teacher, labels = ctx.saved_tensors
        out = torch.empty_like(student)
        for rows in _blocks(student):
            log_q, log_p = (_log_softmax(logits[rows], ctx.temperature) for logits in (student, teacher))
            q = log_q.exp()
            if ctx.beta == 0:
                block = q - log_p.exp()  # g = -p / q
            else:
                g = _log_ratio(log_q, log_p, ctx.beta)
                block = q * (g - (q * g).sum(-1, keepdim=True))
            block *= of_divergences[rows, None]
            block -= q * of_log_probs[rows, None]
            block.scatter_add_(1, labels[rows, None], of_log_probs[rows, None])
            out[rows] = block / ctx.temperature
        return out, None, None, None, None


def _divergence(q: Tensor, log_q: Tensor, p: Tensor, log_p: Tensor, beta: float) -> Tensor:
    """(n,) of rows of probabilities and their logarithms (n, V)."""
    if beta == 0:
        return (p * (log_p - log_q)).sum(-1)
    of_student = (q * _log_ratio(log_q, log_p, beta)).sum(-1)
    return of_student if beta == 1 else of_student + beta * (p * (log_p - _mixture(log_q, log_p, beta))).sum(-1)


def _log_ratio(log_q: Tensor, log_p: Tensor, beta: float) -> Tensor:
    """log q - log p where beta is 1, and otherwise (1 - beta) (log q - log m): what weighs q in the divergence, and
    also its derivative with respect to q."""
    return log_q - log_p if beta == 1 else (1 - beta) * (log_q - _mixture(log_q, log_p, beta))


def _mixture(log_q: Tensor, log_p: Tensor, beta: float) -> Tensor:
    """log m."""
    return torch.logaddexp(log_p + math.log(beta), log_q + math.log1p(-beta))


def _log_softmax(logits: Tensor, temperature: float) -> Tensor:
    block = logits.float()
    # bf16 would round once more.
    return (block if temperature == 1.0 else block / temperature).log_softmax(-1)


def _blocks(logits: Tensor) -> list[slice]:
    """Rows of which a CPU's cache holds the logits; a GPU takes all at once."""
    size = max(1, BLOCK_ELEMENTS // logits.shape[1]) if logits.device.type == "cpu" else max(1, len(logits))
    return [slice(at, at + size) for at in range(0, len(logits), size)]
