"""What a model folder says about itself: `steerboard.json`, written by every stage that makes a model."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from steerboard_contracts.errors import BadInput
from steerboard_contracts.prompts import Normaliser, ScoreFormat, ScoreScale, TemplateName
from steerboard_contracts.training import LoraConfig

ModelRole = Literal["base", "sft", "reward", "preference", "policy"]
Method = Literal["sft", "reward_model", "mle_filter", "rwr", "decision_transformer"]

MODEL_INFO_FILE = "steerboard.json"


class ModelInfo(BaseModel):
    """Everything inference needs besides weights and tokenizer, so that nobody has to remember it.

    `lora` is of an adapter's folder, whose base stands in `base/`; null for whole weights.
    `score_format` and `score_scale` are set for decision-transformer policies, `normaliser` for every
    policy trained on labelled data. `lineage` maps a word (`parent`, `data`, `reward_model`) to a content hash.
    """

    format: Literal[1] = 1
    role: ModelRole
    method: Method | None = None
    architecture: str
    parameters: int
    template: TemplateName = "plain"
    max_length: int
    normaliser: Normaliser | None = None
    score_format: ScoreFormat | None = None
    score_scale: ScoreScale | None = None
    default_score: float | None = None
    lora: LoraConfig | None = None
    lineage: dict[str, str] = {}
    summary: dict[str, float | int | str | None] = {}


# Ranks that the kernels of vLLM's adapters know.
_VLLM_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)


def vllm_rank(rank: int) -> int:
    """The rank for which vLLM has to make room, to run an adapter of `rank`. Raises `BadInput` (`engine_refused`)."""
    room = next((known for known in _VLLM_RANKS if known >= rank), None)
    if room is None:
        raise BadInput(
            f"the adapter's rank is {rank}, and vLLM takes at most {_VLLM_RANKS[-1]}",
            code="engine_refused",
            hint="Take engine: transformers, or train with the adapter merged.",
        )
    return room
