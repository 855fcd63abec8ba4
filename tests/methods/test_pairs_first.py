"""A recipe whose first entrant learned from pairs, without any reward: by a method that someone else wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from support.patience import PATIENCE

TESTS = Path(__file__).resolve().parents[1]
METHOD = """
from typing import Literal
from steerboard_contracts.specs.method import Frozen, MethodSpec, Trained
from steerboard_contracts.training import TrainingConfig

class PairsConfig(TrainingConfig):
    method: Literal["pairs"]

SPEC = MethodSpec(
    name="pairs", title="From pairs", about="Learns from pairs.", source="nowhere", config=PairsConfig,
    training="pairs_method:Pairs", data=("preferences",), outputs=("policy", "critic"), sequences=2,
    also_trains=(Trained("critic", frozenset({"reward", "critic"}), "What answers are worth."),),
    frozen=(Frozen("reference", frozenset({"sft", "policy"}), "Where it starts from."),),
)
"""
RECIPE = """
name: pairs
inputs:
  instructions: {type: dataset, kind: instructions}
  preferences: {type: dataset, kind: preferences}
stages:
  base: {run: base, source: "random:tiny-llama"}
  sft: {run: train, method: sft, model: base, data: $instructions}
  reward: {run: train, method: reward_model, model: sft, data: $preferences}
  labelled: {run: score, data: $instructions, reward: reward}
  pairs: {run: train, method: pairs, model: sft, reference: sft, critic: reward, data: $preferences}
  again: {run: train, method: pairs, model: pairs.policy, reference: sft, critic: pairs.critic, data: $preferences}
  rwr: {run: train, method: rwr, model: sft, data: labelled}
  report: {run: evaluate, entrants: [pairs, rwr, sft], rewards: [reward]}
"""
PLAN = """
import json, sys
from recipe_shelf import Shelf
from steerboard.recipes.errors import InvalidRecipe
from steerboard.recipes.planning.plan import make_plan
text, settings = sys.stdin.read(), ["instructions=graded", "preferences=hh"]
plan = make_plan(text, settings, Shelf())
names = lambda source: getattr(source, "text", None) or "$" + source.name
found = {s.name: {slot: names(one) for slot, one in s.inputs.items()} for s in plan.stages}
faults = []
for wrong in ("pairs.value", "sft.critic", "pairs.critic."):
    try:
        make_plan(text.replace("pairs.critic", wrong), settings, Shelf())
    except InvalidRecipe as error:
        faults.append(error.errors[0].message)
try:
    make_plan(text.replace("model: pairs.policy", "model: pairs.critic"), settings, Shelf())
except InvalidRecipe as error:
    faults.append(error.errors[0].message)
print(json.dumps([found, faults]))
"""


def test_what_the_evaluation_takes_as_labelled_is_what_was_learned_from_rewards(tmp_path: Path) -> None:
    (tmp_path / "pairs_method.py").write_text(METHOD)
    about = tmp_path / "pairs_method-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: pairs-method\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[steerboard.methods]\npairs = pairs_method:SPEC\n")
    paths = os.pathsep.join([str(tmp_path), str(TESTS / "recipes")])
    done = subprocess.run(
        [sys.executable, "-c", PLAN],
        input=RECIPE,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    plan, faults = json.loads(done.stdout)
    assert plan["pairs"] == {"model": "sft", "reference": "sft", "critic": "reward", "data": "$hh"}
    assert plan["report"]["labelled"] == "labelled"
    # A further model of a stage is referred to by its role, and has that role.
    assert plan["again"] == {"model": "pairs", "reference": "sft", "critic": "pairs.critic", "data": "$hh"}
    assert faults == [
        "the stage `pairs` makes no value: it makes policy and critic",
        "the stage `sft` makes no critic: it makes nothing else",
        "must be the name of a stage, or `$` and the name of an input; got 'pairs.critic.'",
        "needs a model of role base or policy or sft; `pairs.critic` (train pairs) makes a model of role critic",
    ]
