"""What a guided request carries in vLLM's `extra_args`, and what each request of its pair carries from then on.

A caller sends one request with `GUIDANCE` and `AGAINST`. The scheduler makes the second one of a pair, and gives both
what the logits processor needs. Both mix the same logits and draw with the same noise, so both get the same token.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from typing import Any

from steerboard_contracts.decoding import Decoding
from steerboard_workers.engines.sampling import stream_key

GUIDANCE = "guidance"
AGAINST = "guidance_against"
KEY = "guidance_key"
SILENT = "guidance_silent"
"""Names in `extra_args`: w; the prompt's ids without its condition; the key of the answer's random stream; ids that are
never drawn."""
_MEMBER = "guidance_pair"

FIELDS = (GUIDANCE, AGAINST, KEY, SILENT, _MEMBER)
MOST = 20.0

# Sampling parameters that a guided request leaves at these values: vLLM applies them to logits that were mixed already,
# or to each request of a pair by itself.
_UNTOUCHED = {
    "min_p": 0.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
    "logit_bias": None,
    "bad_words": None,
    "allowed_token_ids": None,
    "structured_outputs": None,
    "logprobs": None,
    "prompt_logprobs": None,
    "thinking_token_budget": None,
}


@dataclass(frozen=True)
class Member:
    """One request of a pair. `key` (int64) names the random stream that both draw from, `silent` the tokens that
    neither draws."""

    pair: str
    conditional: bool
    guidance: float
    key: int
    temperature: float
    top_k: int
    top_p: float
    silent: tuple[int, ...] = ()

    @property
    def how(self) -> tuple[float, ...]:
        """Equal for answers that are decoded alike."""
        return (self.guidance, self.temperature, self.top_k, self.top_p)

    @property
    def decoding(self) -> Decoding:
        return Decoding(temperature=self.temperature, top_k=self.top_k, top_p=self.top_p, guidance=self.guidance)

    def write(self, params: Any) -> Any:
        """vLLM's parameters of this request. They are greedy, since the processor leaves one token to choose."""
        changed = params.clone()
        changed.temperature, changed.top_p, changed.top_k, changed.seed = 0.0, 1.0, 0, None
        changed.extra_args = {_MEMBER: asdict(self)}
        return changed


def member_of(params: Any) -> Member | None:
    """What a request in vLLM's batch is of a pair; None for one that is not guided."""
    member = (params.extra_args or {}).get(_MEMBER)
    return None if member is None else Member(**member)


def is_guided(params: Any) -> bool:
    """Whether a request asks for guidance and its pair is still to be made."""
    return params is not None and AGAINST in (params.extra_args or {})


def members(params: Any, pair: str) -> tuple[Member, Member]:
    """The member with the condition, and the one without it."""
    given = params.extra_args
    key = given.get(KEY)
    if key is None:
        key = stream_key(secrets.randbits(63) if params.seed is None else params.seed, 0)
    common = {
        "pair": pair,
        "guidance": float(given[GUIDANCE]),
        "key": int(key),
        "temperature": params.temperature,
        "top_k": max(0, params.top_k),
        "top_p": params.top_p,
        "silent": tuple(given.get(SILENT) or ()),
    }
    return Member(conditional=True, **common), Member(conditional=False, **common)


def check(params: Any) -> None:
    """Raises `ValueError` for guidance that cannot be given: it is never left out in silence."""
    given = params.extra_args or {}
    if not any(name in given for name in FIELDS):
        return
    if _MEMBER in given:
        raise ValueError(f"{_MEMBER} is the server's own")
    if GUIDANCE not in given or AGAINST not in given:
        raise ValueError(f"{GUIDANCE} is for chat completions alone, whose prompt can be written without its score")
    guidance = given[GUIDANCE]
    if isinstance(guidance, bool) or not isinstance(guidance, int | float) or not 0 <= guidance <= MOST:
        raise ValueError(f"{GUIDANCE} is a number from 0 to {MOST:g}, got {guidance!r}")
    against = given[AGAINST]
    if not _are_ids(against) or len(against) < 2:
        raise ValueError(f"{AGAINST} is a prompt of at least two token ids")
    if not _are_ids(given.get(SILENT, [])):
        raise ValueError(f"{SILENT} is a list of token ids")
    changed = [name for name, usual in _UNTOUCHED.items() if getattr(params, name, usual) not in (usual, None, [])]
    if changed:
        raise ValueError(f"guided requests take no {', '.join(changed)}: leave them out, or leave out {GUIDANCE}")


def _are_ids(given: Any) -> bool:
    return isinstance(given, list) and all(type(token) is int and token >= 0 for token in given)
