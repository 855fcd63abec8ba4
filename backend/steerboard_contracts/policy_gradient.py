"""What methods share that learn by policy gradient from rewards of their own answers: configs and frozen models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from steerboard_contracts.fields import NonNegative, Positive
from steerboard_contracts.models import POLICIES
from steerboard_contracts.reward_rules import RewardRule
from steerboard_contracts.samples import Finite
from steerboard_contracts.specs.method import Frozen
from steerboard_contracts.training import OnlineConfig

Reducer = Literal["token", "sequence", "constant"]
KlPlace = Literal["reward", "loss"]
KlEstimator = Literal["k1", "k2", "k3"]

CLIP = {"source": "arXiv 1707.06347: 0.2; asymmetric: arXiv 2503.14476 (DAPO), 0.2 and 0.28"}

REWARD_MODELS = ("reward", "reward_2", "reward_3")
"""Inputs of reward models; none has to be given where rules give rewards."""

_SCORED = frozenset({"reward"})
REWARDS = (
    Frozen(REWARD_MODELS[0], _SCORED, "What scores the answers; may be left out with rules.", False, reads="ends"),
    Frozen(REWARD_MODELS[1], _SCORED, "A second one, added by its weight.", False, reads="ends"),
    Frozen(REWARD_MODELS[2], _SCORED, "A third one, added by its weight.", False, reads="ends"),
)
KL_REFERENCE = Frozen(
    "reference",
    POLICIES,
    "The policy to stay near; by default the model that training starts from.",
    required=False,
    when="kl_weight",
)


class RewardedOnlineConfig(OnlineConfig):
    """Of methods that reward their own answers, by reward models, rules or both: the weighted sum counts."""

    rules: Annotated[
        list[RewardRule],
        Field(
            default_factory=list,
            max_length=8,
            description="Rewards by rule: `exact_match` with the reference answer of the row, or `regex`; each has a "
            "`weight`.",
        ),
    ]
    reward_weights: Annotated[
        list[Finite] | None,
        Field(
            min_length=1,
            max_length=len(REWARD_MODELS),
            description="Weights of the reward models `reward`, `reward_2`, `reward_3`, in this order; 1 by default.",
        ),
    ] = None
    reward_clip: Annotated[
        Positive | None,
        Field(
            description="Larger rewards count as this, and those below its negative as that, before any KL.",
            json_schema_extra={"source": "OpenRLHF's command line: 10"},
        ),
    ] = None
    cut_penalty: Annotated[
        NonNegative,
        Field(description="Taken from the reward of an answer that a limit cut before its end token."),
    ] = 0.0
    max_unscored: Annotated[
        Finite,
        Field(ge=0, le=1, description="Answers without a reward are left out; a larger share of a step fails the run."),
    ] = 0.1

    def weight_of(self, model: str) -> float:
        """Of a reward model, by the name of its input."""
        place = REWARD_MODELS.index(model)
        given = self.reward_weights or []
        return given[place] if place < len(given) else 1.0

    @model_validator(mode="after")
    def _learns_what_it_sampled(self) -> RewardedOnlineConfig:
        if self.lora is not None and self.lora.dropout:
            raise ValueError(
                "lora.dropout must be 0: with it, the log-probs of an answer would not be those it was sampled with"
            )
        return self


class PolicyGradientConfig(RewardedOnlineConfig):
    """Of those that learn by the clipped policy gradient, near a reference."""

    kl_weight: Annotated[
        NonNegative, Field(description="Of the KL from the reference; 0 does without, and without a reference.")
    ] = 0.05
    kl_in: Annotated[KlPlace, Field(description="Whether the KL is taken from the reward or added to the loss.")] = (
        "reward"
    )
    kl_estimator: Annotated[
        KlEstimator | None,
        Field(
            description="k1 in the reward; in the loss k2, whose gradient is that of the KL, or k3, the default there.",
            json_schema_extra={"source": "k3: arXiv 2402.03300, Eq. 4; k2: arXiv 2501.03262"},
        ),
    ] = None
    clip_low: Annotated[
        Finite, Field(gt=0, lt=1, description="Ratios below 1 less this teach nothing more.", json_schema_extra=CLIP)
    ] = 0.2
    clip_high: Annotated[
        Positive | None,
        Field(description="Ratios above 1 plus this teach nothing more; clip_low by default.", json_schema_extra=CLIP),
    ] = None
    dual_clip: Annotated[
        Finite | None,
        Field(
            gt=1,
            description="The loss of a token with a negative advantage is at most this times the advantage's size.",
            json_schema_extra={"source": "arXiv 1912.09729, Eq. 5: 3"},
        ),
    ] = None
    reducer: Annotated[
        Reducer,
        Field(
            description="The loss is the mean over all tokens, the mean over answers of the mean over their tokens, or "
            "the sum over tokens divided by answers times the longest answer that is allowed."
        ),
    ] = "token"
    minibatches: Annotated[
        int, Field(ge=1, le=256, description="Optimiser steps into which the answers of one sampling are split.")
    ] = 1
    updates: Annotated[int, Field(ge=1, le=64, description="How often the answers of one sampling are learned.")] = 1
    kl_stop: Annotated[
        Positive | None,
        Field(description="Sample again once the policy's KL a token from the one that sampled is above this."),
    ] = None
    drop_equal: Annotated[
        bool,
        Field(
            description="Leave out prompts whose answers all have the same reward.",
            json_schema_extra={"source": "arXiv 2503.14476 (DAPO), Section 3.2, without sampling others for them"},
        ),
    ] = False

    @property
    def kl_form(self) -> KlEstimator:
        return self.kl_estimator or ("k1" if self.kl_in == "reward" else "k3")

    @property
    def clip_range(self) -> tuple[float, float]:
        return self.clip_low, self.clip_low if self.clip_high is None else self.clip_high

    @model_validator(mode="after")
    def _kl_has_an_effect(self) -> PolicyGradientConfig:
        if self.kl_in == "loss" and self.kl_form == "k1":
            raise ValueError(
                "kl_estimator k1 in the loss has no effect on average: use k2 or k3 there, or kl_in: reward"
            )
        if self.kl_in == "reward" and self.kl_form != "k1":
            raise ValueError(f"kl_estimator {self.kl_form} belongs into the loss; in the reward it is k1")
        if self.drop_equal and self.answers < 2:
            raise ValueError("drop_equal compares the answers to a prompt: it needs answers of 2 or more")
        return self


class GroupedConfig(PolicyGradientConfig):
    """Of those whose answers are compared with the others to the same prompt."""

    answers: Annotated[int, Field(ge=2, le=256, description="Answers sampled to each prompt.")] = 4
