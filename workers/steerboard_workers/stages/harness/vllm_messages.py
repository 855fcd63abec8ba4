"""What the process of the harness and the one that has vLLM send each other (`engines.vllm.process`). Everything is
token ids: texts are made and read by the harness alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from steerboard_contracts.fields import Precision


@dataclass(frozen=True)
class Open:
    """The first message: take up the model in `folder`, for `sequences` together and a `window` of so many tokens.
    `options` are the fields of `VllmOptions`: the two environments may have pydantic in different versions."""

    folder: str
    precision: Precision
    device: Literal["auto", "cpu", "cuda"]
    window: int
    sequences: int
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Write:
    """One answer to each prompt, of `limits` tokens at most, until one of the texts `stop`. `seeds` of their random
    numbers, each another one; temperature 0 is greedy."""

    prompts: Sequence[Sequence[int]]
    limits: Sequence[int]
    seeds: Sequence[int]
    temperature: float
    top_p: float
    top_k: int
    stop: Sequence[str]


@dataclass(frozen=True)
class Written:
    """The answer to prompt `place`, with the token that ended it, if one did."""

    place: int
    ids: Sequence[int]


@dataclass(frozen=True)
class Measure:
    """log p of the tokens of each sequence from its place in `starts` (1 or later) on, given those before them."""

    sequences: Sequence[Sequence[int]]
    starts: Sequence[int]


@dataclass(frozen=True)
class Measured:
    """What was measured of sequence `place`: the sum, in nats, and whether each of the tokens was the likeliest."""

    place: int
    log_prob: float
    greedy: bool


@dataclass(frozen=True)
class Choose:
    """log p of each of some `tokens` after each prompt: choices of one token have their prompt computed once, and what
    prompts begin with alike, too."""

    prompts: Sequence[Sequence[int]]
    tokens: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Chosen:
    """Log-probs after prompt `place`: of the tokens in their order, in nats, and which of all tokens is the
    likeliest."""

    place: int
    log_probs: Sequence[float]
    likeliest: int


@dataclass(frozen=True)
class Done:
    """The last answer to each message."""


HarnessCommand = Open | Write | Measure | Choose
