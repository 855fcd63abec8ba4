"""An entrant of an evaluation answers its prompts."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from steerboard_contracts.decoding import MOST_SAMPLES, BestOf, RequestedCondition, WithDecoding
from steerboard_contracts.fields import NonNegative
from steerboard_contracts.models import POLICIES
from steerboard_contracts.pinned_endpoint import AsksEndpoint
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import models


class AnswerConfig(WithDecoding, AsksEndpoint):
    """An entrant of an evaluation answers its prompts. Started by the evaluation, never by a recipe.

    `prompts_hash` replaces the prompts where a finished equal run is looked for, `endpoint` for who is asked when
    it is a server elsewhere. `temperatures`, by category of the prompt, override the decoding's own. `estimates_kl`:
    with an input `kl_to`, its answers get log-ratios to it, and not only log-probs under it.
    """

    run: Literal["answer"] = "answer"
    evaluation: UUID
    entrant: UUID
    prompts_hash: str = ""
    endpoint: str | None = None
    score: RequestedCondition = None
    samples: Annotated[int, Field(ge=1, le=MOST_SAMPLES, description="Answers to each prompt.")] = 1
    best_of: BestOf = None
    temperatures: dict[str, NonNegative] = Field(default={})
    estimates_kl: bool = True


SPEC = RunKindSpec(
    run="answer",
    title="Answer",
    about="An entrant of an evaluation answers its prompts.",
    config=AnswerConfig,
    slots={
        "model": models(*POLICIES, required=False),
        "reward": models("reward", required=False),
        "kl_to": models(*POLICIES, required=False),
    },
    asks_endpoint="named",
    resumes="rows",
)
