"""Models are compared on held-out prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.decoding import MOST_SAMPLES, BestOf, GuidanceField, WithDecoding
from steerboard_contracts.fields import Config, Count, RequestsPerMinute
from steerboard_contracts.known_quality import KnownQuality
from steerboard_contracts.models import POLICIES
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import TEXTS, datasets, models
from steerboard_contracts.specs.work import RowCounts


class Entrant(Config):
    """One model of an evaluation, once for each score or condition (once with its default where there are none).

    With `best_of`, the reward model of input `best_of.N` chooses for entrant N; its answers are sampled at the
    decoding's temperature, or at 1 where that is 0.
    """

    scores: list[Condition] = Field(default=[])
    guidance: GuidanceField = 1.0
    best_of: BestOf = None
    samples: Annotated[
        int,
        Field(
            ge=1,
            le=MOST_SAMPLES,
            description="Answers to each prompt. Rewards are their mean; those of the model of `kl_to` also give the "
            "curve of its best of n, up to that many.",
        ),
    ] = 1

    @model_validator(mode="after")
    def _has_one_answer_chosen(self) -> Entrant:
        if self.best_of is not None and self.samples > 1:
            raise ValueError("`best_of` chooses one answer, and cannot be combined with several `samples`")
        return self


class EndpointJudge(Config):
    """An LLM at a registered endpoint that judges the answers of an evaluation."""

    endpoint: Annotated[str, Field(min_length=1, max_length=200, description="A registered endpoint, by name.")]
    style: Annotated[
        Literal["pairwise", "single"],
        Field(description="`pairwise`: two answers, in both orders; `single`: one answer, from 1 to 10."),
    ] = "pairwise"
    criteria: Annotated[str | None, Field(max_length=4000, description="What to weigh, in the judge's prompt.")] = None
    requests_per_minute: Annotated[
        RequestsPerMinute | None, Field(description="Limit of the rate; none by default.")
    ] = None
    concurrency: Annotated[int, Field(ge=1, le=64, description="Requests in flight at the same time.")] = 4


class EvaluateConfig(WithDecoding):
    """An evaluation of held-out prompts. The run itself computes nothing: it starts an evaluation whose answers and
    rewards are runs of their own, and has succeeded when those have."""

    run: Literal["evaluate"] = "evaluate"
    entrants: Annotated[list[Entrant], Field(min_length=1)]
    prompts: Annotated[Count, Field(description="At most this many held-out prompts.")] = 200
    quality: Annotated[
        KnownQuality | None,
        Field(
            description="A program that knows how good an answer is rates all answers: `sentiment` is how positive "
            "an English text is, `synthetic` is for the synthetic demo data."
        ),
    ] = None
    examples: Annotated[int, Field(ge=0, le=50)] = 3
    decides: Annotated[
        bool,
        Field(
            description="For a round: does the judge, or else the first reward model, rate the last entrant lower than "
            "the one before it? That ends the rounds."
        ),
    ] = False
    judge: Annotated[
        EndpointJudge | None,
        Field(description="An LLM that compares the answers; a preference model is given as the input `judge`."),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _has_no_draws_of_its_own(cls, given: Any) -> Any:
        """Earlier versions had `bootstrap`, the draws of intervals that the evaluation has, too."""
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if name != "bootstrap"}

    @model_validator(mode="after")
    def _has_two_to_compare(self) -> EvaluateConfig:
        if self.decides and len(self.entrants) < 2:
            raise ValueError("`decides` compares the last two entrants, but there is only one")
        return self

    @model_validator(mode="after")
    def _guidance_is_an_entrants(self) -> EvaluateConfig:
        if self.decoding.guided:
            raise ValueError(
                "give `guidance` to the entrants that take scores, and not to `decoding`, which applies to all"
            )
        return self

    @model_validator(mode="after")
    def _samples_differ(self) -> EvaluateConfig:
        if self.decoding.temperature == 0 and any(entrant.samples > 1 for entrant in self.entrants):
            raise ValueError("several `samples` need a `decoding.temperature` above 0, or they are all the same")
        return self


def _answers(config: EvaluateConfig, data: Mapping[str, RowCounts]) -> float:
    """The answers of all entrants, each at every condition."""
    each = sum(max(1, len(entrant.scores)) for entrant in config.entrants)
    return float(min(config.prompts, data.get("data", RowCounts()).held_out) * each)


SPEC = RunKindSpec(
    run="evaluate",
    title="Evaluate",
    about="Compare models on held-out prompts by reward.",
    config=EvaluateConfig,
    slots={
        "entrants": models(*POLICIES, many=True),
        "rewards": models("reward", many=True),
        "best_of": models("reward", many=True, required=False),
        "judge": models("preference", required=False),
        "kl_to": models(*POLICIES, required=False),
        "data": datasets(*TEXTS),
        "labelled": datasets("labelled", required=False),
        "preferences": datasets("preferences", required=False),
    },
    lists={"entrants": "entrants"},
    form=("entrants", "prompts", "decoding", "engine"),
    may_change=("judge",),
    work=_answers,
)
