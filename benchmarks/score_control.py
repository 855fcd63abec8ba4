r"""Ways of writing and learning a score, each trained alike, as a recipe.

    steerboard datasets export review-prompts tuning.jsonl --split train     # after `make demo-real`
    sed -i 's/"prompt":"\(.\)/"prompt":"Please \L\1/' tuning.jsonl
    steerboard datasets import tuning.jsonl --kind prompts --name tuning
    python benchmarks/score_control.py > score-control.yaml
    steerboard run score-control.yaml --set base=smollm2-135m-instruct --set prompts=tuning \
      --set reward=demo-real-1.reward

`tuning` has the demo's training prompts alone, reworded by sed, since a prompt stays on its side of the split: what is
chosen by them has not seen the prompts that the demo reports on. Every variant differs from `words` in its own fields;
`--variants words floor` makes a recipe of these alone. With `--graded`, rows are labelled by the program that knows the
sentiment, with the demo's noise; a reward model from pairs of them only judges.

Two figures decide: the condition gain of the runs (`eval_condition_gain_shuffled`), and the sentiment at -5 and 5,
which a program knows.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

WORDS: dict[str, Any] = {
    "run": "train",
    "method": "decision_transformer",
    "model": "$base",
    "data": "labelled",
    "score_scale": "linear",
    "score_step": 0.5,
    "score_style": "words",
    "score_place": "request",
    "score_phrase": "The opinion is {}.",
    "balance_scores": True,
    "drop_score": 0.1,
    "condition_gain_rows": 128,
    "evaluate_rows": 128,
    "evaluate_every": 50,
    "lr": 1.0e-5,
    "batch": 16,
    "max_steps": 50,
    "precision": "fast",
}
VARIANTS: dict[str, dict[str, Any]] = {
    "words": {},
    "digits": {"score_style": "digits", "score_place": "answer"},  # the paper's
    "tokens": {"score_style": "tokens"},
    "unbalanced": {"balance_scores": False},
    "contrast": {"contrast": True},
    "floor": {"loss_floor": 1.0},
}
JUDGE: dict[str, Any] = {
    "pairs": {
        "run": "select",
        "data": "labelled",
        "keep": "best_and_worst",
        "pairs": 2,
        "scale": "raw",
        "min_margin": 1.0,
    },
    "reward": {
        "run": "train",
        "method": "reward_model",
        "model": "$base",
        "data": "pairs",
        "lr": 1.0e-4,
        "batch": 8,
        "max_steps": 40,
        "precision": "fast",
    },
}
SCORES = [-5.0, 5.0]
GUIDANCES = [1.0, 3.0]


def recipe(variants: Sequence[str], graded: bool) -> dict[str, Any]:
    """Each model answers at both scores, with and without guidance; the base answers without a score."""
    answers = {
        "run": "generate",
        "model": "$base",
        "data": "$prompts",
        "split": "all",
        "decoding": {"temperature": 1.0, "n": 4, "max_new_tokens": 48},
        "batch_size": 96,
        "precision": "fast",
    }
    entrants = [
        {"model": name, "scores": SCORES, "guidance": guidance, "samples": 2}
        for name in variants
        for guidance in GUIDANCES
    ]
    report = {
        "run": "evaluate",
        "entrants": ["$base", *entrants],
        "rewards": ["reward" if graded else "$reward"],
        "quality": "sentiment",
        "decoding": {"temperature": 1.0, "max_new_tokens": 48},
        "prompts": 60,
        "batch_size": 96,
        "precision": "fast",
    }
    inputs = {"base": {"type": "model"}, "prompts": {"type": "dataset", "kind": "prompts"}}
    labels: dict[str, Any] = {"labelled": {"run": "score", "data": "answers", "reward": "$reward", "precision": "fast"}}
    if graded:
        labels = {"labelled": {"run": "grade", "data": "answers", "quality": "sentiment", "noise": 0.5}, **JUDGE}
    return {
        "name": "score-control",
        "inputs": inputs if graded else {**inputs, "reward": {"type": "model"}},
        "stages": {
            "answers": answers,
            **labels,
            **{name: {**WORDS, **VARIANTS[name]} for name in variants},
            "report": report,
        },
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--graded", action="store_true", help="label rows by the known sentiment")
    given = parser.parse_args()
    print(json.dumps(recipe(given.variants, given.graded), indent=2))
