# ruff: noqa: E501
"""The contract's recipe, and what is looked at in a plan."""

from __future__ import annotations

import pytest

from steerboard.recipes.errors import InvalidRecipe
from steerboard.recipes.planning.plan import Plan, PlannedStage, make_plan
from steerboard.runs.launch.lookup import Catalogue

# Verbatim from CONTRACTS.md.
CONTRACT = """\
name: offline-rlhf
inputs:
  base: {type: model}                       # registry name, local folder, hub name, or random:tiny-llama (needs a tokenizer trained on the data)
  instructions: {type: dataset, kind: instructions, optional: true}   # absent: prompts with their chosen side
  preferences: {type: dataset, kind: preferences}
  prompts: {type: dataset, kind: prompts, optional: true}             # absent: prompts of the two above
stages:
  sft:       {run: train, method: sft, model: $base, data: $instructions, lr: 5.0e-6, batch: 128}
  reward:    {run: train, method: reward_model, model: sft, data: $preferences, lr: 9.0e-6, batch: 128, epochs: 1}
  generated: {run: generate, model: sft, data: $prompts, decoding: greedy}
  mixture:   {run: mix, parts: [{data: generated, share: 0.333}, {data: $instructions, share: auto}, {data: $preferences, side: both, share: auto}], size: 100000}
  labelled:  {run: score, data: mixture, reward: reward}
  mle:       {run: train, method: mle_filter, model: sft, data: labelled, threshold: 0.0, lr: 5.0e-6}
  rwr:       {run: train, method: rwr, model: sft, data: labelled, beta: 5.0, lr: 5.0e-6}
  dt:        {run: train, method: decision_transformer, model: sft, data: labelled, score_scale: zscore, lr: 5.0e-6}
  report:    {run: evaluate, entrants: [sft, mle, rwr, {model: dt, scores: [-5.0, -2.5, 0.0, 2.5, 5.0]}], rewards: [reward, independent]}
"""


def stage(plan: Plan, name: str) -> PlannedStage:
    return next(s for s in plan.stages if s.name == name)


def refused(shelf: Catalogue, text: str, *overrides: str) -> list[str]:
    with pytest.raises(InvalidRecipe) as caught:
        make_plan(text, list(overrides), shelf)
    return [f"{error.location}: {error.message}" for error in caught.value.errors]
