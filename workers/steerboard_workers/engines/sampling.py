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
_BITS = 52  # of a uniform draw
# On a CPU, the noise of a vocabulary this large takes longer than the model: it is computed where it can decide.
_LARGE = 1 << 14
_LIKELIEST = 64
_AT_ONCE = 1 << 17  # tokens whose bits stay in a core's cache


def stream_key(seed: int, *parts: int) -> int:
    """64-bit key of one answer's random stream, as a signed integer for torch. `parts` name the answer: (row, n), in
    training (step, row, n)."""
    key = 0
    for part in (seed, *parts):
        key = _mix_int((key + _GOLDEN + (part & _MASK)) & _MASK)
    return _signed(key)


def gumbel_noise(keys: Tensor, positions: Tensor, vocabulary: int) -> Tensor:
    """Standard Gumbel noise (B, V) in float64 for streams `keys` (B,) at token `positions` (B,), both int64."""
    tokens = torch.arange(vocabulary, dtype=torch.int64, device=keys.device)
    return _gumbel(_bits(_streams(keys, positions)[:, None], _steps(tokens)))


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
    warped = warp(logits, decoding)
    if warped.device.type == "cpu" and warped.shape[-1] >= _LARGE:
        return pruned_draw(warped, keys, positions)
    return gumbel_noise(keys, positions, warped.shape[-1]).add_(warped).argmax(-1)


def pruned_draw(warped: Tensor, keys: Tensor, positions: Tensor) -> Tensor:
    """argmax(warped + Gumbel noise) (B,), bit for bit, without the noise of tokens that cannot win.

    The best of the likeliest tokens is a bound. Any other token is at most as likely as the last of them, so that it
    needs noise above a threshold, which is one of its random bits: two logarithms of the whole vocabulary are left out.
    """
    vocabulary = warped.shape[-1]
    best, likeliest = warped.topk(min(_LIKELIEST, vocabulary))
    streams = _streams(keys, positions)
    bound = _gumbel(_bits(streams[:, None], _steps(likeliest))).add_(best).amax(-1)
    # A little less than what is needed: rounding must not leave out a winner, nor an equal token before it.
    needed = bound - best[:, -1] - 1e-6
    # P(noise > needed) = 1 - exp(-exp(-needed)), in units of the draw.
    above = torch.expm1(-torch.exp(-needed)).neg_().mul_(2.0**_BITS).ceil_().to(torch.int64)
    thresholds = ((1 << _BITS) - 1 - above).tolist()
    steps = torch.split(_steps(torch.arange(vocabulary, dtype=torch.int64)), _AT_ONCE)
    drawn = torch.empty_like(keys)
    for row, threshold in enumerate(thresholds):
        able = torch.cat([_bits(streams[row], part) >= threshold for part in steps])
        able[likeliest[row]] = True
        candidates = able.nonzero().squeeze(1)
        values = _gumbel(_bits(streams[row], _steps(candidates))).add_(warped[row, candidates])
        drawn[row] = candidates[values.argmax()]
    return drawn


def log_probs_of(tokens: Tensor, logits: Tensor, decoding: Decoding) -> Tensor:
    """log softmax (B,) float32 of logits (B, V) / temperature at each token, at 1 for greedy decoding; of all tokens,
    whether top-k and top-p ruled some out or not."""
    logits = logits.float() / (decoding.temperature or 1.0)
    return logits.gather(1, tokens[:, None]).squeeze(1) - logits.logsumexp(-1)


def _streams(keys: Tensor, positions: Tensor) -> Tensor:
    """The state (B,) of each stream at its position."""
    return _mix_(keys + (positions + 1) * _signed(_GOLDEN))


def _steps(tokens: Tensor) -> Tensor:
    return (tokens + 1) * _signed(_GOLDEN)


def _bits(streams: Tensor, steps: Tensor) -> Tensor:
    """The draw of each token in its stream, of 52 bits; in place, since it is the largest thing that sampling holds."""
    return _mix_(streams + steps).bitwise_right_shift_(64 - _BITS).bitwise_and_((1 << _BITS) - 1)


def _gumbel(bits: Tensor) -> Tensor:
    """The bits and a half: u is strictly inside (0, 1), so both logarithms are finite."""
    uniform = bits.to(torch.float64).add_(0.5).mul_(2.0**-_BITS)
    return uniform.log_().neg_().log_().neg_()


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
