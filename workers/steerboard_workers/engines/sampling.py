"""Choosing the next token, so a draw depends only on (seed, row, n, position).

Sampling is argmax(warped logits + Gumbel noise), which draws from the softmax. The noise of a token comes from a
counter-based generator (SplitMix64), so batching, sharding, compaction and resuming change nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from steerboard_contracts.decoding import Decoding

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def stream_key(seed: int, *parts: int) -> int:
    """64-bit key of one answer's random stream, as a signed integer for torch. `parts` name the answer: (row, n), in
    training (step, row, n)."""
    key = 0
    for part in (seed, *parts):
        key = _mix_int((key + _GOLDEN + (part & _MASK)) & _MASK)
    return _signed(key)


def gumbel_noise(keys: Tensor, positions: Tensor, vocabulary: int) -> Tensor:
    """Standard Gumbel noise (B, V) in float64 for streams `keys` (B,) at token `positions` (B,), both int64."""
    golden = _signed(_GOLDEN)
    at = _mix_(keys + (positions + 1) * golden)
    tokens = torch.arange(1, vocabulary + 1, dtype=torch.int64, device=keys.device) * golden
    # In place from here on: this is the largest thing that a step of sampling holds.
    bits = _mix_(at[:, None] + tokens)
    # The upper 52 bits and a half: u is strictly inside (0, 1), so both logarithms are finite.
    uniform = bits.bitwise_right_shift_(12).bitwise_and_((1 << 52) - 1).to(torch.float64).add_(0.5).mul_(2.0**-52)
    return uniform.log_().neg_().log_().neg_()


def warp(logits: Tensor, decoding: Decoding) -> Tensor:
    """Temperature, then top-k, then top-p, on float32 logits (B, V); what is ruled out becomes -inf."""
    logits = logits / decoding.temperature
    if 0 < decoding.top_k < logits.shape[-1]:
        least = logits.topk(decoding.top_k).values[:, -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    if decoding.top_p < 1:
        ordered, order = logits.sort(descending=True, stable=True)
        probabilities = ordered.softmax(-1)
        # A token stays while those before it hold less than top_p; the first one always stays.
        before = probabilities.cumsum(-1) - probabilities
        out = torch.zeros_like(logits, dtype=torch.bool).scatter_(-1, order, before >= decoding.top_p)
        logits = logits.masked_fill(out, -torch.inf)
    return logits


def guided(conditional: Tensor, unconditional: Tensor, weight: float) -> Tensor:
    """Logits (B, V) float32 of classifier-free guidance: u + w (c - u), with those behind the prompt with its condition
    (c) and without (u). w = 1 is c, 0 is u, more asks for the condition more strongly (arXiv 2306.17806, Eq. 7)."""
    c, u = conditional.float(), unconditional.float()
    # Two infinities of one sign, such as those of a padded vocabulary, have no difference.
    return torch.where(c == u, c, torch.lerp(u, c, weight))


def next_tokens(logits: Tensor, decoding: Decoding, keys: Tensor, positions: Tensor) -> Tensor:
    """Next token (B,) for logits (B, V): the largest at temperature 0, else a draw."""
    logits = logits.float()
    if decoding.temperature == 0:
        return logits.argmax(-1)
    return gumbel_noise(keys, positions, logits.shape[-1]).add_(warp(logits, decoding)).argmax(-1)


def log_probs_of(tokens: Tensor, logits: Tensor, decoding: Decoding) -> Tensor:
    """log softmax (B,) float32 of logits (B, V) / temperature at each token, at 1 for greedy decoding; of all tokens,
    whether top-k and top-p ruled some out or not."""
    logits = logits.float() / (decoding.temperature or 1.0)
    return logits.gather(1, tokens[:, None]).squeeze(1) - logits.logsumexp(-1)


def _mix_(x: Tensor) -> Tensor:
    """SplitMix64's finaliser, in place; int64 products wrap, and the shift is made logical by a mask."""
    shifted = torch.empty_like(x)
    for shift, factor in (*_MIX, (31, 1)):
        torch.bitwise_right_shift(x, shift, out=shifted)
        x.bitwise_xor_(shifted.bitwise_and_((1 << (64 - shift)) - 1)).mul_(_signed(factor))
    return x


def _mix_int(x: int) -> int:
    for shift, factor in _MIX:
        x = ((x ^ (x >> shift)) * factor) & _MASK
    return x ^ (x >> 31)


def _signed(x: int) -> int:
    return x - (1 << 64) if x >= 1 << 63 else x
