"""Models are compared on held-out prompts."""

from __future__ import annotations

from steerboard_contracts.configs.evaluate import EvaluateConfig
from steerboard_contracts.models import POLICIES
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import TEXTS, datasets, models

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
    place=40,
)
