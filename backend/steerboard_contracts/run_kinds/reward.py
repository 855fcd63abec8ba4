"""A reward model scores the responses of an evaluation."""

from __future__ import annotations

from steerboard_contracts.configs.reward import RewardConfig
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import datasets, models

SPEC = RunKindSpec(
    run="reward",
    title="Reward",
    about="A reward model scores the responses of an evaluation.",
    config=RewardConfig,
    slots={
        "reward": models("reward", required=False),
        "preferences": datasets("preferences", required=False),
        "labelled": datasets("labelled", required=False),
    },
    makes=None,
    makes_thing=None,
    of_evaluation=True,
    stage="reward_responses",
    evaluation_input="responses",
    resumes="rows",
)
