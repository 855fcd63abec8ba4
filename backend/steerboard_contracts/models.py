"""What a model folder says about itself: `steerboard.json`, written by every stage that makes a model."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from steerboard_contracts.configs import LoraConfig
from steerboard_contracts.prompts import Normaliser, ScoreFormat, ScoreScale, TemplateName

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
