"""Rules that watch the figures of a training run, and what happens when one of them holds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator

from steerboard_contracts.fields import Config, Count, Positive
from steerboard_contracts.samples import Finite

FIGURE = r"^[a-z][a-z0-9_]{0,62}$"
INDEPENDENT_REWARD = "independent_reward"
"""The mean of the rewards of judges and reward models that nothing learns from."""

Action = Literal["note", "pause", "stop"]


class _Rule(Config):
    action: Annotated[
        Action,
        Field(
            description="note: report it; pause: keep a checkpoint, free the device and wait to be resumed; stop: the "
            "run fails, and can be resumed."
        ),
    ] = "note"
    succeed: Annotated[
        bool, Field(description="With stop: keep the model as it is at that step, and let the run succeed.")
    ] = False

    @model_validator(mode="after")
    def _ends_only_by_stop(self) -> _Rule:
        if self.succeed and self.action != "stop":
            raise ValueError("`succeed` needs `action: stop`")
        return self


class _Lasting(_Rule):
    steps: Annotated[Count, Field(le=10_000, description="Number of figures in a row.")] = 3


class KlRule(_Lasting):
    """The policy has moved far from its reference."""

    kind: Literal["kl"] = "kl"
    above: Annotated[
        Positive,
        Field(
            description="Nats per answer, in the mean.",
            json_schema_extra={"source": "three times the target of 6 in the code of arXiv 1909.08593"},
        ),
    ] = 18.0


class EntropyRule(_Lasting):
    """The policy has stopped to explore: its entropy a token is a small share of what it was first."""

    kind: Literal["entropy"] = "entropy"
    below: Annotated[
        Finite,
        Field(
            gt=0,
            lt=1,
            description="Share of the first figure.",
            json_schema_extra={"source": "the collapse is that of arXiv 2505.22617; the share is ours"},
        ),
    ] = 0.1


class ClipShareRule(_Lasting):
    """Updates are so large that the clip takes the gradient of many tokens away."""

    kind: Literal["clip_share"] = "clip_share"
    above: Annotated[Finite, Field(gt=0, lt=1, description="Share of the tokens of a step.")] = 0.3


class SamplerKlRule(_Lasting):
    """What samples is another policy than the one that learns: its engine computes other probabilities, or its weights
    are too old."""

    kind: Literal["sampler_kl"] = "sampler_kl"
    above: Annotated[
        Positive,
        Field(
            description="Nats a token.",
            json_schema_extra={"source": "ten times the 0.001 that NeMo-RL's tests allow of its gen_kl_error"},
        ),
    ] = 0.01


class TiedRule(_Lasting):
    """All answers to every prompt have the same reward, so that there is nothing to learn."""

    kind: Literal["tied_groups"] = "tied_groups"


class JudgeRule(_Rule):
    """The reward rises while figures of a judge fall that no one trains on: arXiv 2210.10760."""

    kind: Literal["reward_against_judge"] = "reward_against_judge"
    judge: Annotated[
        str,
        Field(
            pattern=FIGURE,
            description="A figure of the run. `eval_reward` is of the same rewards on held-out prompts; a reward model "
            "of weight 0, such as `eval_reward_model_2`, is independent.",
        ),
    ] = "eval_reward"
    falls: Annotated[Count, Field(le=1000, description="How often in a row the judge's figure falls.")] = 2


class OveroptimisationRule(_Rule):
    """The reward rises, and a judge or a reward model that no one trains on does not: the policy learns what the reward
    gets wrong, arXiv 2210.10760.

    The lines through the last `figures` figures by least squares: that of the reward rises by more than two standard
    errors, and that of the judge does not rise.
    """

    kind: Literal["overoptimisation"] = "overoptimisation"
    judge: Annotated[
        str,
        Field(
            pattern=FIGURE,
            description="A figure of the run. `independent_reward` is the mean of the judges and reward models of "
            "weight 0 on sampled answers, `eval_independent_reward` on held-out prompts.",
        ),
    ] = INDEPENDENT_REWARD
    figures: Annotated[
        int,
        Field(
            ge=4,
            le=1000,
            description="How many figures of the judge are compared with the rewards since the one before each.",
            json_schema_extra={"source": "the number is ours"},
        ),
    ] = 8


class BothFallRule(_Lasting):
    """Chosen and rejected answers of held-out pairs have both become much less likely, and the policy separates them
    less well from evaluation to evaluation. Chosen answers alone often become less likely; both may, too."""

    kind: Literal["both_fall"] = "both_fall"
    floor: Annotated[
        Positive,
        Field(
            description="Nats per answer, in the mean, that both sides have lost since the first evaluation.",
            json_schema_extra={"source": "that both may fall: arXiv 2402.13228; the number is ours"},
        ),
    ] = 20.0
    figure: Annotated[
        Literal["eval_pair_accuracy", "eval_margin"],
        Field(description="What falls as well: the share of held-out pairs in the right order, or their margin."),
    ] = "eval_pair_accuracy"
    steps: Annotated[
        Count,
        Field(
            le=10_000,
            description="Number of evaluations in a row, each with a lower figure than the one before.",
            json_schema_extra={"source": "the number is ours"},
        ),
    ] = 2


class ZeroZRule(_Lasting):
    """The KL that answers are compared with, `z`, stays 0: each is then learned by its own log-ratio alone."""

    kind: Literal["zero_z"] = "zero_z"
    steps: Annotated[
        Count,
        Field(
            le=10_000,
            description="Number of steps in a row. In the first one, where the policy is its reference, z is 0.",
            json_schema_extra={"source": "z: arXiv 2402.01306, Section 4.1; the number is ours"},
        ),
    ] = 20


class UnusedConditionRule(_Rule):
    """The interval of what answers gain by their own condition over a shuffled one reaches 0: the policy does not use
    what it is asked for. At the first evaluations it may not yet."""

    kind: Literal["unused_condition"] = "unused_condition"
    from_evaluation: Annotated[
        Count, Field(le=1000, description="First evaluation that counts; the last one if there are fewer.")
    ] = 3


class HeldOutLossRule(_Rule):
    """The held-out loss rises from evaluation to evaluation: the model learns its training rows by heart."""

    kind: Literal["held_out_loss"] = "held_out_loss"
    rises: Annotated[Count, Field(le=1000, description="How often in a row the held-out loss rises.")] = 3


class RouterCollapseRule(_Lasting):
    """A layer of a mixture of experts sends its tokens to few experts: the share that it uses in effect, which is
    exp(entropy of the loads) / E, is a small part of what it was first."""

    kind: Literal["router_collapse"] = "router_collapse"
    below: Annotated[
        Finite,
        Field(
            gt=0,
            lt=1,
            description="Share of the first figure of the layer that uses fewest, `experts_used_min`.",
            json_schema_extra={"source": "the collapse is that of arXiv 1701.06538, Section 4; the share is ours"},
        ),
    ] = 0.5


class ThresholdRule(_Lasting):
    """A figure of the run passes a bound."""

    kind: Literal["threshold"] = "threshold"
    figure: Annotated[
        str,
        Field(pattern=FIGURE, description="A figure of the run, such as `eval_loss`."),
    ]
    above: Annotated[Finite | None, Field(description="The rule holds above this value.")] = None
    below: Annotated[Finite | None, Field(description="The rule holds below this value.")] = None
    steps: Annotated[Count, Field(le=10_000, description="Number of figures in a row.")] = 1

    @model_validator(mode="after")
    def _has_a_bound(self) -> ThresholdRule:
        if self.above is None and self.below is None:
            raise ValueError("give `above` or `below`")
        if self.above is not None and self.below is not None and self.below >= self.above:
            raise ValueError("`below` must be less than `above`: the rule holds outside the two")
        return self


HealthRule = Annotated[
    KlRule
    | EntropyRule
    | ClipShareRule
    | SamplerKlRule
    | TiedRule
    | OveroptimisationRule
    | JudgeRule
    | BothFallRule
    | ZeroZRule
    | UnusedConditionRule
    | HeldOutLossRule
    | RouterCollapseRule
    | ThresholdRule,
    Field(discriminator="kind"),
]
HealthRules = Annotated[
    list[HealthRule],
    Field(max_length=16, description="What to watch during the run, and what to do about it."),
]


# The rules of runs that sample their own answers, that learn from pairs, and that learn to be asked for a condition:
# each is reported, and none ends anything.
ONLINE_RULES: list[HealthRule] = [
    KlRule(),
    EntropyRule(),
    ClipShareRule(),
    SamplerKlRule(),
    TiedRule(),
    OveroptimisationRule(),
    JudgeRule(),
]
PAIR_RULES: list[HealthRule] = [BothFallRule()]
CONDITION_RULES: list[HealthRule] = [UnusedConditionRule()]


class Finding(BaseModel):
    """A rule, by its place in the config, that holds at `step` and did not before."""

    step: int
    rule: int
    kind: str
    action: Action
    reason: str
