"""Data and a recipe that make a policy whose answers follow the score that is asked for."""

from __future__ import annotations

from typing import Any

THINGS = ("apple", "leaf", "lake", "lemon", "stone", "cloud", "river", "house")
COLORS = ("red", "green", "blue", "yellow", "grey")
# Good, middling and bad answers to the same prompts; their grades are what the policy learns to be asked for.
GRADES = (("A lovely {} thing, gladly and with joy!", 2.0), ("It is {}.", 0.0), ("No.", -2.0))
RECIPE = """
name: steered
inputs:
  graded: {type: dataset, kind: labelled}
  pairs: {type: dataset, kind: preferences}
stages:
  base: {run: base, source: "random:tiny-llama", vocabulary: 400, hidden: 64, layers: 2, heads: 2, max_length: 96}
  reward:
    run: train
    method: reward_model
    model: base
    data: $pairs
    lr: 2.0e-3
    batch: 16
    max_steps: 60
    epochs: 100
  dt:
    run: train
    method: decision_transformer
    model: base
    data: $graded
    lr: 3.0e-3
    batch: 24
    max_steps: 240
    epochs: 100
    score_scale: quantile
    score_step: 1.0
"""


def graded() -> list[dict[str, Any]]:
    return [
        {
            "prompt": f"Tell of a {color} {thing}.",
            "response": text.format(color),
            "source": "people",
            "reward": grade,
        }
        for thing in THINGS
        for color in COLORS
        for text, grade in GRADES
    ]


def pairs() -> list[dict[str, Any]]:
    return [
        {"prompt": f"Tell of a {color} {thing}.", "chosen": better.format(color), "rejected": worse.format(color)}
        for thing in THINGS
        for color in COLORS
        for (better, _), (worse, _) in ((GRADES[0], GRADES[1]), (GRADES[1], GRADES[2]), (GRADES[0], GRADES[2]))
    ]
