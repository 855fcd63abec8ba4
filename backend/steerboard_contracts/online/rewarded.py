"""What methods share that reward the answers of the model in training: their reward models, and their config."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator

from steerboard_contracts.fields import Count, NonNegative, Positive
from steerboard_contracts.online.answer_groups import InspectGroups, InspectGroupSteps
from steerboard_contracts.online.judge_reward import MOST_AT_ONCE, JudgeReward, PinnedJudge, judge_identity
from steerboard_contracts.online.reward_rules import OutsideReward, RewardRule
from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.samples import Finite
from steerboard_contracts.specs.method import Frozen

REWARD_MODELS = ("reward", "reward_2", "reward_3")
"""Inputs of reward models; none has to be given where rules give rewards."""

_SCORED = frozenset({"reward"})
REWARDS = tuple(
    Frozen(name, _SCORED, about, required=False, reads="ends", by_text=True)
    for name, about in zip(
        REWARD_MODELS,
        (
            "What scores the answers; may be left out with rules.",
            "A second one, added by its weight.",
            "A third one, added by its weight.",
        ),
        strict=True,
    )
)


def watching_inputs(config: Mapping[str, Any]) -> set[str]:
    """The inputs of a stored config whose reward model has weight 0. Its rewards are shown, but nothing learns from
    them."""
    weights = config.get("reward_weights") or []
    return {name for name, weight in zip(REWARD_MODELS, weights, strict=False) if weight == 0}


def teaching_judges(config: Mapping[str, Any]) -> set[str]:
    """The judges that a stored config learns from, as `judge_identity` names them."""
    rules = [rule for rule in config.get("rules") or [] if isinstance(rule, Mapping) and rule.get("weight")]
    pinned = [rule["pinned"]["endpoint"] for rule in rules if rule.get("kind") == "judge" and rule.get("pinned")]
    return {judge_identity(endpoint["id"], endpoint["model"]) for endpoint in pinned}


class RewardedOnlineConfig(OnlineConfig):
    """The config of methods that reward their own answers, by reward models, rules or both: the weighted sum counts."""

    rules: Annotated[
        list[RewardRule],
        Field(
            default_factory=list,
            max_length=8,
            description="Rewards by rule: `exact_match` with the reference answer of the row, `regex`, a `python` "
            "file, an `http` server or an LLM `judge`; each has a `weight`.",
        ),
    ]
    judge_budget: Annotated[
        Positive | None,
        Field(
            description="Most that the judges among the rules may cost together, in the currency of their prices. No "
            "request is made that could exceed it: the run fails before, and resumes with a larger one.",
        ),
    ] = None
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
            description="Rewards are clipped to between minus this and this, before any KL.",
            json_schema_extra={"source": "OpenRLHF's command line: 10"},
        ),
    ] = None
    normalise_rewards: Annotated[
        bool,
        Field(
            description="Normalise rewards by their running mean and standard deviation over all answers so far, "
            "before they are clipped.",
            json_schema_extra={"source": "OpenRLHF's command line; for several rewards, after they are added up"},
        ),
    ] = False
    cut_penalty: Annotated[
        NonNegative,
        Field(description="Subtracted from the reward of an answer that a limit cut before its end token."),
    ] = 0.0
    overlong_tokens: Annotated[
        Count | None,
        Field(
            description="An answer within this many tokens of its limit pays a share of overlong_penalty that grows "
            "with every token; null for none.",
            json_schema_extra={"source": "arXiv 2503.14476, Eq. 13: 4096 of 20480"},
        ),
    ] = None
    overlong_share: Annotated[
        Finite | None,
        Field(
            gt=0,
            lt=1,
            description="overlong_tokens as a share of the tokens that an answer may have.",
            json_schema_extra={"source": "arXiv 2503.14476, Eq. 13: 4096 of 20480 are 0.2"},
        ),
    ] = None
    overlong_penalty: Annotated[
        NonNegative,
        Field(description="Penalty of an answer that uses all allowed tokens, with overlong_tokens or _share."),
    ] = 1.0
    refill: Annotated[
        int,
        Field(
            ge=0,
            le=64,
            description="Ask further prompts, at most this often in a step, until as many as a batch has are answered "
            "with unequal rewards. Prompts whose answers are all equal are left out.",
            json_schema_extra={"source": "arXiv 2503.14476, Section 3.2: dynamic sampling"},
        ),
    ] = 0
    max_unscored: Annotated[
        Finite,
        Field(ge=0, le=1, description="Answers without a reward are left out; a larger share of a step fails the run."),
    ] = 0.1
    max_sampler_difference: Annotated[
        Positive,
        Field(
            description="Fail where the log-probs of the engine that samples are further than this from the trained "
            "model's, in nats per token on average: it samples another policy."
        ),
    ] = 0.1
    inspect_groups: InspectGroups = 4
    inspect_group_steps: InspectGroupSteps = 32

    def weight_of(self, model: str) -> float:
        """The weight of a reward model, by the name of its input."""
        place = REWARD_MODELS.index(model)
        given = self.reward_weights or []
        return given[place] if place < len(given) else 1.0

    def sources(self, given: Collection[str]) -> int:
        """How many rewards of a weight other than 0 there are where the inputs of these names are given."""
        models = [name for name in REWARD_MODELS if name in given and self.weight_of(name)]
        return len(models) + sum(
            weight != 0 for weight in (*(rule.weight for rule in self.rules), *self.further_rewards)
        )

    @property
    def further_rewards(self) -> list[float]:
        """The weights of rewards that are neither of models nor of rules."""
        return []

    @property
    def rewards_outside(self) -> bool:
        return any(isinstance(rule, OutsideReward) for rule in self.rules)

    @property
    def doubts(self) -> dict[str, str]:
        """Why a judge that the policy learns from should not reward answers, by its name; none for calibrated ones."""
        pinned = {rule.judge: rule.pinned for rule in self.judges.values() if rule.weight and rule.pinned}
        return {name: judge.doubt for name, judge in pinned.items() if judge.doubt}

    @property
    def judges(self) -> dict[int, JudgeReward]:
        """The judges among the rules, by their place."""
        return {place: rule for place, rule in enumerate(self.rules) if isinstance(rule, JudgeReward)}

    def judge_fault(self, judge: PinnedJudge) -> str | None:
        """Why the answers of this run cannot be judged by it."""
        if judge.groupwise and self.answers < 2:
            return f"it ranks the answers to a prompt (style {judge.style}), and needs `answers` of 2 or more"
        if judge.style == "multi" and self.answers > MOST_AT_ONCE:
            return f"style multi compares at most {MOST_AT_ONCE} answers at once, and `answers` is {self.answers}"
        prices = [judge.settings.get(name) for name in ("prompt_price", "completion_price")]
        if self.judge_budget is not None and prices == [None, None]:
            return "it has no prices, which `judge_budget` needs: add a judge with `prompt_price`, `completion_price`"
        return None

    @property
    def shapes_length(self) -> bool:
        """Whether long answers pay."""
        return self.overlong_tokens is not None or self.overlong_share is not None

    def overlong_margin(self, longest: int) -> int | None:
        """How many of an answer's `longest` tokens cost it something; None for none."""
        if self.overlong_share is None:
            return self.overlong_tokens
        return min(math.ceil(self.overlong_share * longest), longest - 1) or None

    def input_fault(self, given: Collection[str]) -> str | None:
        return self.reward_fault(given)

    def reward_fault(self, given: Collection[str]) -> str | None:
        """What the reward models among the inputs of the names `given` lack, with the rules of the config."""
        if self.sources(given):
            return None
        if self.rules or self.further_rewards or any(name in given for name in REWARD_MODELS):
            return "every reward has the weight 0, so nothing would be learned: give one of them another weight"
        return f"nothing gives the answers a reward: give a reward model as `{REWARD_MODELS[0]}`, or `rules`"

    @model_validator(mode="after")
    def _learns_what_it_sampled(self) -> RewardedOnlineConfig:
        if self.refill and self.answers < 2:
            raise ValueError("refill compares the answers to a prompt: it needs answers of 2 or more")
        if self.overlong_tokens is not None and self.overlong_share is not None:
            raise ValueError("overlong_tokens and overlong_share say the same: give one of them")
        if self.overlong_tokens is not None and self.overlong_tokens >= (self.max_new_tokens or math.inf):
            raise ValueError(
                f"overlong_tokens {self.overlong_tokens} must be fewer than max_new_tokens {self.max_new_tokens}"
            )
        if self.lora is not None and self.lora.dropout:
            raise ValueError(
                "lora.dropout must be 0: with it, the log-probs of an answer would not be those it was sampled with"
            )
        return self
