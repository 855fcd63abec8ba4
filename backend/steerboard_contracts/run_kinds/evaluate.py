"""Models are compared on held-out prompts."""

from __future__ import annotations

from collections.abc import Mapping

from steerboard_contracts.configs.evaluate import EvaluateConfig
from steerboard_contracts.models import POLICIES
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import TEXTS, datasets, models
from steerboard_contracts.specs.work import RowCounts


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
    makes=None,
    makes_thing=None,
    lists={"entrants": "entrants"},
    form=("entrants", "prompts", "decoding", "engine"),
    may_change=("judge",),
    evaluates=True,
    leaves="evaluation",
    work=_answers,
    place=40,
)
