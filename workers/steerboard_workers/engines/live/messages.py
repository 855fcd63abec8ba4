"""What the process that trains and the one that has vLLM send each other over a socket that only they hold, pickled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from steerboard_workers.engines.shared_weights import Layout


@dataclass(frozen=True)
class Start:
    """`folder` has the model's config (`write_config`) and no weights: these come by `Update`. `options` are the fields
    of `VllmOptions`: the two environments may have pydantic in different versions. `routes`: it returns those of a
    mixture of experts."""

    folder: str
    dtype: Literal["float32", "bfloat16"]
    window: int
    sequences: int
    options: Mapping[str, Any]
    device: Literal["cpu", "cuda"]
    routes: bool = False


@dataclass(frozen=True)
class Update:
    """Take these weights, and forget what was computed with others."""

    layout: Layout


@dataclass(frozen=True)
class Draw:
    """One answer to each prompt. `seeds` of their random numbers, `limits` in tokens; temperature 0 is greedy.
    `silent`: tokens that are never drawn."""

    prompts: Sequence[Sequence[int]]
    limits: Sequence[int]
    seeds: Sequence[int]
    temperature: float
    ends: Sequence[int]
    silent: Sequence[int] = ()


@dataclass(frozen=True)
class Drawn:
    """ids with the end token, if one was drawn; log_probs at the temperature, of these. routes: where `Start` asked
    for them, (tokens, layers, k) experts of the prompt's and the answer's tokens but the last one, which none reads."""

    ids: Sequence[Sequence[int]]
    log_probs: Sequence[Sequence[float]]
    routes: Sequence[NDArray[np.uint8 | np.int16]] = ()


@dataclass(frozen=True)
class Done:
    """The reply to `Start` and `Update`."""


LiveCommand = Start | Update | Draw
