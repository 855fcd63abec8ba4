"""A model folder's description of itself: `steerboard.json`, written by every stage that makes a model."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

from pydantic import BaseModel, computed_field, model_validator

from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.errors import BadInput
from steerboard_contracts.lora import LoraConfig
from steerboard_contracts.prompts import Normaliser, ScoreScale, TemplateName

ModelRole = Literal["base", "sft", "reward", "preference", "policy", "critic"]
Ancestor = Literal["base", "sft"]
"""Roles of the models that a policy comes from, with which it is compared."""
# Roles of models that answer.
POLICIES = frozenset({"base", "sft", "policy"})
# Roles of models with one number for their head.
SCALARS = frozenset({"reward", "critic"})
# Roles of models that judge answers.
JUDGES = frozenset({"reward", "preference"})

_COMPARES = (
    "A preference model compares two answers and cannot score a single one: use it as the `judge` of a selection, "
    "as the judge of an evaluation, or in a benchmark; for rewards name a model of role reward."
)
_SCORES = (
    "A reward model scores single answers and compares none: score the answers with it, and select by their rewards; "
    "for comparisons name a model of role preference."
)


def what_to_name(given: str, wanted: Collection[str]) -> str:
    """What to do where a model of role `given` was named for another one; also why, where the two are easily taken
    for each other."""
    if given == "preference" and SCALARS & set(wanted):
        return _COMPARES
    if given in SCALARS and "preference" in wanted:
        return _SCORES
    return f"Name a model of role {' or '.join(sorted(wanted))}."


MODEL_INFO_FILE = "steerboard.json"


class ScoreFormat(BaseModel):
    """How former releases describe the attribute `rm_score` in a model's folder, where it is the only one."""

    limit: float = 5.0
    step: float = 0.1


Aggregate = Literal["min", "product", "last", "mean"]
"""How the probabilities of an answer's steps become its reward: their minimum or product (arXiv 2305.20050), that of
the last step, or their mean."""


class ProcessReward(BaseModel):
    """How a process reward model is read: behind each step, which ends with `separator` or with the answer."""

    separator: str
    aggregate: Aggregate = "min"


class ModelInfo(BaseModel):
    """Everything inference needs besides weights and tokenizer.

    `reward_at`: where a model with one number for its head is read: at the end token of the answer (those of former
    releases), or at the last token of the conversation as the template closes it. `process`: of a reward model that is
    read at the end of every step as well.
    `lora` is of an adapter's folder, whose base is in `base/`; null for whole weights.
    `condition` is set for policies that take one, `score_scale` for those whose score means a reward (and
    `score_format` and `default_score` with it, for programs that read what former releases wrote), `normaliser` for
    every policy trained on labelled data. `lineage` maps a word (`parent`, `data`, `reward_model`)
    to a content hash; of a base it has `source`, and of one from a GGUF file `file` and `dequantised_from`, its types.
    """

    format: Literal[1] = 1
    role: ModelRole
    method: str | None = None
    architecture: str
    parameters: int
    template: TemplateName = "plain"
    max_length: int
    reward_at: Literal["answer_end", "conversation_end"] = "answer_end"
    process: ProcessReward | None = None
    normaliser: Normaliser | None = None
    condition: ConditionFormat | None = None
    score_scale: ScoreScale | None = None
    lora: LoraConfig | None = None
    lineage: dict[str, str] = {}
    summary: dict[str, float | int | str | None] = {}

    @model_validator(mode="before")
    @classmethod
    def _of_former_releases(cls, given: Any) -> Any:
        """Their policies were asked with a score or with nothing."""
        if not isinstance(given, dict) or given.get("condition") is not None or not given.get("score_format"):
            return given
        form = ScoreFormat.model_validate(given["score_format"])
        return {**given, "condition": ConditionFormat.of_score(form.limit, form.step, given.get("default_score"))}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def score_format(self) -> ScoreFormat | None:
        if self.condition is None or not self.condition.only_score:
            return None
        return ScoreFormat(limit=self.condition.attributes[0].high, step=self.condition.attributes[0].step)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def default_score(self) -> float | None:
        return None if self.condition is None else self.condition.default.score


# Ranks that the kernels of vLLM's adapters know.
_VLLM_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)


def vllm_rank(rank: int) -> int:
    """The rank for which vLLM has to make room, to run an adapter of `rank`. Raises `BadInput` (`engine_refused`)."""
    room = next((known for known in _VLLM_RANKS if known >= rank), None)
    if room is None:
        raise BadInput(
            f"the adapter's rank is {rank}, and vLLM supports at most {_VLLM_RANKS[-1]}",
            code="engine_refused",
            hint="Use engine: transformers, or train with the adapter merged.",
        )
    return room
