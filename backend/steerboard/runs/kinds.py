"""What each kind of stage takes in, makes, and may be configured with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from steerboard_contracts.configs import (
    BaseModelConfig,
    BenchmarkConfig,
    EvaluateConfig,
    GenerateConfig,
    MixConfig,
    ScoreConfig,
)
from steerboard_contracts.fields import Config
from steerboard_contracts.training import (
    DecisionTransformerConfig,
    MleFilterConfig,
    RewardModelConfig,
    RwrConfig,
    SftConfig,
)

Thing = Literal["model", "dataset"]

POLICIES = frozenset({"base", "sft", "policy"})
TEXTS = frozenset({"instructions", "preferences", "prompts", "labelled", "unpaired"})


@dataclass(frozen=True)
class Slot:
    """A named input: a model of one of these roles, or a dataset of one of these kinds.

    `many`: a list of references (`parts.0`, `parts.1`, ...); `required` may be met by the planner, see planner.py.
    """

    thing: Thing
    allowed: frozenset[str]
    many: bool = False
    required: bool = True


@dataclass(frozen=True)
class StageKind:
    """`word` is how a recipe names it: the run kind, with the method for `train`."""

    run: str
    method: str | None
    config: type[Config]
    slots: dict[str, Slot]
    makes: str | None
    """Role of the model or kind of the dataset that comes out; None where nothing can be built on it."""
    makes_thing: Thing | None

    @property
    def word(self) -> str:
        return f"{self.run} {self.method}" if self.method else self.run


def _model(*roles: str, many: bool = False, required: bool = True) -> Slot:
    return Slot("model", frozenset(roles), many, required)


def _data(*kinds: str, many: bool = False, required: bool = True) -> Slot:
    return Slot("dataset", frozenset(kinds), many, required)


def _train(method: str, config: type[Config], data: str, role: str) -> StageKind:
    # A reward model may also go on from another one.
    models = POLICIES | {"reward"} if role == "reward" else POLICIES
    return StageKind("train", method, config, {"model": _model(*models), "data": _data(data)}, role, "model")


STAGE_KINDS: tuple[StageKind, ...] = (
    StageKind("base", None, BaseModelConfig, {"data": _data(*TEXTS, many=True, required=False)}, "base", "model"),
    _train("sft", SftConfig, "instructions", "sft"),
    _train("reward_model", RewardModelConfig, "preferences", "reward"),
    _train("mle_filter", MleFilterConfig, "labelled", "policy"),
    _train("rwr", RwrConfig, "labelled", "policy"),
    _train("decision_transformer", DecisionTransformerConfig, "labelled", "policy"),
    StageKind(
        "generate",
        None,
        GenerateConfig,
        {"model": _model(*POLICIES), "data": _data(*TEXTS, required=False)},
        "instructions",
        "dataset",
    ),
    StageKind(
        "mix",
        None,
        MixConfig,
        {"parts": _data("instructions", "preferences", "labelled", many=True)},
        "instructions",
        "dataset",
    ),
    StageKind(
        "score",
        None,
        ScoreConfig,
        {"data": _data("instructions", "labelled"), "reward": _model("reward")},
        "labelled",
        "dataset",
    ),
    StageKind(
        "evaluate",
        None,
        EvaluateConfig,
        {
            "entrants": _model(*POLICIES, many=True),
            "rewards": _model("reward", many=True),
            "data": _data(*TEXTS),
            "labelled": _data("labelled", required=False),
            "preferences": _data("preferences", required=False),
        },
        None,
        None,
    ),
    StageKind(
        "benchmark",
        None,
        BenchmarkConfig,
        {"reward": _model("reward"), "pairs": _data("preferences")},
        None,
        None,
    ),
)

RUN_WORDS = tuple(dict.fromkeys(kind.run for kind in STAGE_KINDS))
METHODS = tuple(kind.method for kind in STAGE_KINDS if kind.method)

STAGE_OPTIONS = ("pool", "reuse")
"""Keys of every stage that say where it runs and whether a finished equal one is taken, not what it does."""


def kind_of(run: object, method: object) -> StageKind | None:
    return next((k for k in STAGE_KINDS if k.run == run and k.method == (method if run == "train" else None)), None)
