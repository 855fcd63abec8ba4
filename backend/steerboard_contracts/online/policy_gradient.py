"""The config and the reference of methods that learn by policy gradient from rewards of their own answers."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Annotated, Literal

from pydantic import Field, model_validator

from steerboard_contracts.fields import Count, NonNegative, Positive
from steerboard_contracts.models import POLICIES
from steerboard_contracts.online.environments import EpisodicConfig
from steerboard_contracts.online.policy_loss_fields import (
    ClipField,
    KlIn,
    KlWeight,
    Minibatches,
    Ratio,
    RatioField,
    ReducerField,
)
from steerboard_contracts.samples import Finite
from steerboard_contracts.specs.method import Frozen, FurtherData
from steerboard_contracts.wording import counted

Scaling = Literal["std", "batch", "none"]
KlEstimator = Literal["k1", "k2", "k3"]

CLIP = {
    "source": "arXiv 1707.06347: 0.2; asymmetric: arXiv 2503.14476, 0.2 and 0.28; of sequences: arXiv 2507.18071, "
    "0.0003 and 0.0004; of weights: arXiv 2510.13786, none and 4"
}
GATE = {"source": "arXiv 2511.20347: 1 and 1.05"}
KL_REFERENCE = Frozen(
    "reference",
    POLICIES,
    "The policy to stay near; by default the model that training starts from.",
    required=False,
    when="kl_weight",
)

PRETRAINING = FurtherData(
    "pretraining",
    ("instructions",),
    "Texts that are learned besides, by ptx_coefficient.",
    when="ptx_coefficient",
)


class PolicyGradientConfig(EpisodicConfig):
    """The config of methods that learn by the clipped policy gradient, near a reference.

    A policy loss is one value of each of `ratio`, `clip`, `reducer`, and of what advantages are: methods are names for
    combinations.
    """

    kl_weight: KlWeight = 0.05
    kl_in: Annotated[KlIn, Field(json_schema_extra={"source": "reward: arXiv 2203.02155, Eq. 2"})] = "reward"
    kl_estimator: Annotated[
        KlEstimator | None,
        Field(
            description="Divergence (KL) estimator: k1 in the reward; in the loss k2, the default there, whose "
            "gradient is that of the KL, or k3.",
            json_schema_extra={"source": "k2: arXiv 2501.03262; k3: arXiv 2402.03300, Eq. 4"},
        ),
    ] = None
    ratio: Annotated[
        RatioField,
        Field(json_schema_extra={"source": "token: arXiv 1707.06347; sequence: arXiv 2507.18071, Eq. 7 and 14"}),
    ] = "token"
    clip: Annotated[
        ClipField,
        Field(
            json_schema_extra={
                "source": "surrogate: arXiv 1707.06347, Eq. 7; weight: arXiv 2506.13585, Eq. 4; gate: arXiv 2511.20347"
            }
        ),
    ] = "surrogate"
    clip_low: Annotated[
        Finite | None,
        Field(
            gt=0,
            lt=1,
            description="Ratios below 1 minus this teach nothing more, or have that weight; null for no bound below. "
            "Without effect on a gate.",
            json_schema_extra=CLIP,
        ),
    ] = 0.2
    clip_high: Annotated[
        Positive | None,
        Field(
            description="Ratios above 1 plus this teach nothing more, or have that weight; clip_low by default. "
            "Without effect on a gate.",
            json_schema_extra=CLIP,
        ),
    ] = None
    gate_positive: Annotated[
        Positive,
        Field(
            description="With clip gate: how soon tokens with a positive advantage count less as their ratio leaves 1.",
            json_schema_extra=GATE,
        ),
    ] = 1.0
    gate_negative: Annotated[
        Positive, Field(description="gate_positive for the other tokens.", json_schema_extra=GATE)
    ] = 1.05
    dual_clip: Annotated[
        Finite | None,
        Field(
            gt=1,
            description="The loss of a token with a negative advantage is at most this times the advantage's size; "
            "with clip surrogate only.",
            json_schema_extra={"source": "arXiv 1912.09729, Eq. 5: 3"},
        ),
    ] = None
    reducer: Annotated[ReducerField, Field(json_schema_extra={"source": "token: arXiv 2503.14476, Eq. 12"})] = "token"
    minibatches: Minibatches = 1
    updates: Annotated[int, Field(ge=1, le=64, description="How often the answers of one sampling are learned.")] = 1
    sampler_weight_cap: Annotated[
        Finite | None,
        Field(
            ge=1,
            description="Weigh each token by how much likelier the trained model finds it than the engine that sampled "
            "it did, at most this; null weighs none.",
            json_schema_extra={"source": "truncated importance sampling, fengyao.notion.site/off-policy-rl: 2"},
        ),
    ] = None
    sampler_weight_level: Annotated[
        Ratio,
        Field(
            description="What sampler_weight_cap weighs: each token by its own ratio, or an answer by the product of "
            "its tokens', which is without bias below the cap and varies more.",
            json_schema_extra={"source": "J. Liu et al., When Speed Kills Stability (2025); verl: caps of 2 to 10"},
        ),
    ] = "token"
    sampler_mean_low: Annotated[
        Finite | None,
        Field(
            gt=0,
            lt=1,
            description="Leave out answers whose ratio of the trained model to what sampled them is below this, in the "
            "geometric mean of their tokens; null for no bound.",
            json_schema_extra={"source": "verl: the reciprocal of sampler_mean_high"},
        ),
    ] = None
    sampler_mean_high: Annotated[
        Finite | None,
        Field(
            gt=1,
            description="Leave out answers whose ratio is above this, in the geometric mean of their tokens.",
            json_schema_extra={"source": "verl: 1.0002 to 1.001"},
        ),
    ] = None
    sampler_token_low: Annotated[
        Finite | None,
        Field(
            gt=0,
            lt=1,
            description="Leave out answers of which a single token has a ratio below this.",
            json_schema_extra={"source": "verl: 0.0001 to 0.000001"},
        ),
    ] = None
    sampler_token_high: Annotated[
        Finite | None, Field(gt=1, description="Leave out answers of which a single token has a ratio above this.")
    ] = None
    router_replay: Annotated[
        bool,
        Field(
            description="Send each token of a mixture of experts to the experts that the engine chose for it while it "
            "sampled, in every pass of the update and those before it; the routers still weigh them and learn.",
            json_schema_extra={"source": "arXiv 2510.11370: rollout routing replay"},
        ),
    ] = False
    max_off_policy_steps: Annotated[
        int | None,
        Field(
            ge=0,
            description="Drop what is left of a sampling whose answers are of the policy more optimiser steps ago than "
            "this, and sample again; null for no bound.",
            json_schema_extra={"source": "prime-rl's max_off_policy_steps: 8"},
        ),
    ] = None
    kl_stop: Annotated[
        Positive | None,
        Field(
            description="Divergence (KL) per token from the policy that sampled, above which answers are sampled again."
        ),
    ] = None
    drop_equal: Annotated[
        bool,
        Field(
            description="Leave out prompts whose answers all have the same reward.",
            json_schema_extra={"source": "arXiv 2503.14476, Section 3.2; `refill` samples others for them"},
        ),
    ] = False
    entropy_weight: Annotated[
        NonNegative,
        Field(
            description="Weight of the policy's entropy per token, which is added to what is learned to keep answers "
            "diverse; 0 turns it off.",
            json_schema_extra={"source": "arXiv 1707.06347, Eq. 9: 0.01"},
        ),
    ] = 0.0

    ptx_coefficient: Annotated[
        NonNegative,
        Field(
            description="Pretraining weight: that of the negative log-likelihood of the dataset `pretraining`, "
            "which each update adds to the loss of the rewards; 0 turns it off.",
            json_schema_extra={"source": "arXiv 2203.02155, Eq. 2: 27.8"},
        ),
    ] = 0.0
    ptx_batch: Annotated[
        Count | None,
        Field(
            description="Pretraining rows in one update; by default as many as it has answers.",
            json_schema_extra={"source": "arXiv 2203.02155, Appendix C.4: eight times as many as answers"},
        ),
    ] = None

    @model_validator(mode="after")
    def _weighs_what_is_stale(self) -> PolicyGradientConfig:
        if self.staleness and self.sampler_weight_cap is None:
            raise ValueError("staleness needs sampler_weight_cap, such as 2: its answers are of an earlier policy")
        if self.engine == "vllm" and self.vllm.rounds and not self.corrects_sampler:
            raise ValueError(
                "vllm.kv_cache fp8 samples from rounded probabilities: weigh or mask answers for it, by "
                "sampler_weight_cap, such as 2, or sampler_mean_high"
            )
        if self.sampler_weight_level == "sequence" and self.sampler_weight_cap is None:
            raise ValueError("sampler_weight_level needs sampler_weight_cap, such as 2: without it nothing is weighed")
        youngest = self.staleness * self.updates * self.minibatches
        if self.max_off_policy_steps is not None and self.max_off_policy_steps < youngest:
            raise ValueError(
                f"max_off_policy_steps {self.max_off_policy_steps} would drop every answer: with staleness "
                f"{self.staleness} and {counted(self.updates * self.minibatches, 'step')} a sampling, answers are "
                f"{counted(youngest, 'step')} old when they are learned first"
            )
        return self

    @model_validator(mode="after")
    def _can_replay_routes(self) -> PolicyGradientConfig:
        if not self.router_replay:
            return self
        if self.engine == "vllm" and not self.vllm.prefix_caching:
            raise ValueError("router_replay needs vllm.prefix_caching: vLLM keeps the routes with the cached prompts")
        if self.environment is not None and self.environment.max_turns > 1:
            raise ValueError(
                "router_replay is for answers of one turn: an engine reads earlier turns again, and may "
                "route them in another way than it wrote them. Set max_turns to 1, or leave router_replay out"
            )
        return self

    @property
    def replays_routes(self) -> bool:
        return self.router_replay

    @property
    def masks_answers(self) -> bool:
        """Whether answers are left out that the sampler gave other probabilities than the trained model does."""
        bounds = self.sampler_mean_low, self.sampler_mean_high, self.sampler_token_low, self.sampler_token_high
        return any(bound is not None for bound in bounds)

    @property
    def corrects_sampler(self) -> bool:
        """Whether tokens are weighed for what sampled them."""
        return self.sampler_weight_cap is not None or self.masks_answers

    def input_fault(self, given: Collection[str]) -> str | None:
        return self.reward_fault(given) or self._ptx_fault(given)

    def _ptx_fault(self, given: Collection[str]) -> str | None:
        if self.ptx_coefficient and PRETRAINING.name not in given:
            return f"ptx_coefficient needs a dataset to learn: give one as `{PRETRAINING.name}`, or set it to 0"
        if PRETRAINING.name in given and not self.ptx_coefficient:
            return f"`{PRETRAINING.name}` has no effect with ptx_coefficient 0: set that, or leave the dataset out"
        return None

    @property
    def ptx_rows(self) -> int:
        """Rows of `pretraining` in one update."""
        return self.ptx_batch or max(1, self.batch * self.answers // self.minibatches)

    @property
    def kl_form(self) -> KlEstimator:
        return self.kl_estimator or ("k1" if self.kl_in == "reward" else "k2")

    @property
    def compared_with(self) -> str:
        """What the reward of an answer is compared with, in words: the table in docs/training.md."""
        return ""

    @property
    def clip_range(self) -> tuple[float, float]:
        """Distances of the bounds from 1: below, where 1 is none, and above."""
        high = self.clip_low if self.clip_high is None else self.clip_high
        return 1.0 if self.clip_low is None else self.clip_low, math.inf if high is None else high

    @model_validator(mode="after")
    def _kl_has_an_effect(self) -> PolicyGradientConfig:
        if self.kl_in == "loss" and self.kl_form == "k1":
            raise ValueError(
                "kl_estimator k1 in the loss has no effect on average: use k2 or k3 there, or kl_in: reward"
            )
        if self.kl_in == "reward" and self.kl_form != "k1":
            raise ValueError(f"kl_estimator {self.kl_form} belongs in the loss; in the reward, use k1")
        if self.dual_clip is not None and self.clip != "surrogate":
            raise ValueError(f"dual_clip bounds the surrogate, and clip is {self.clip}: leave it out")
        if self.ptx_batch is not None and not self.ptx_coefficient:
            raise ValueError("ptx_batch has no effect with ptx_coefficient 0")
        if self.drop_equal and self.answers < 2:
            raise ValueError("drop_equal compares the answers to a prompt: it needs answers of 2 or more")
        return self


class GroupedConfig(PolicyGradientConfig):
    """The config of methods whose answers are compared with the others to the same prompt."""

    answers: Annotated[int, Field(ge=2, le=256, description="Answers sampled per prompt.")] = 4


class ScaledConfig(GroupedConfig):
    """The config of methods whose rewards are those less their group's mean, over a standard deviation."""

    answers: Annotated[
        int,
        Field(
            ge=2,
            le=256,
            description="Answers sampled per prompt.",
            json_schema_extra={"source": "TRL 1.16; 64 in arXiv 2402.03300, 16 in arXiv 2503.14476"},
        ),
    ] = 8
    scaling: Annotated[
        Scaling,
        Field(
            description="Divide by the standard deviation of a prompt's rewards, which favours prompts that are "
            "nearly always or nearly never solved, by that of all rewards of the step, or by none.",
            json_schema_extra={
                "source": "std: arXiv 2402.03300, Eq. 3; none: arXiv 2503.20783; batch: arXiv 2508.08221"
            },
        ),
    ] = "std"

    @property
    def compared_with(self) -> str:
        return (
            "the mean of its prompt's answers"
            + {
                "std": ", over their standard deviation",
                "batch": ", over the standard deviation of the step",
                "none": "",
            }[self.scaling]
        )
