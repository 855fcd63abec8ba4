"""An entrant of an evaluation answers its prompts."""

from __future__ import annotations

from steerboard_contracts.configs.answer import AnswerConfig
from steerboard_contracts.models import POLICIES
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import models

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
    makes=None,
    makes_thing=None,
    of_evaluation=True,
    asks_endpoint="named",
    # `prompts_hash` identifies the prompts, so for whom they are answered changes nothing.
    without_effect=frozenset({"evaluation", "entrant"}),
    stage="answer",
    evaluation_input="prompts",
    leaves="responses",
    resumes="rows",
)
