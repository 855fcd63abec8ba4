"""Writes the synthetic demo files: the same bytes for the same seed, on any machine."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from steerboard_workers.synthetic.answers import KINDS, AnswerKind, write_answer, write_off_topic
from steerboard_workers.synthetic.quality import quality
from steerboard_workers.synthetic.topics import QUESTIONS, SITUATIONS, TOPICS, prompt_text

INSTRUCTIONS = 2400
PAIRS = 3600
PROMPTS = 840
THUMBS = 1200
LABEL_NOISE = 0.02
LEAST_DIFFERENCE = 0.03
# Pairs that differ in nothing but the topic: without them a reward model learns to count words.
SAME_FORM = 0.25
FORMS: tuple[AnswerKind, ...] = ("dry", "brief", "short", "short")
# The middle is emphasised, so that a model fine-tuned on the instructions answers modestly, as real ones do.
INSTRUCTION_MIX: dict[AnswerKind, int] = {
    "friendly": 12,
    "dry": 12,
    "brief": 18,
    "short": 28,
    "question": 12,
    "terse": 6,
    "filler": 4,
    "off_topic": 8,
}
# Half of the answers with a thumb are good ones, as the weights of the two classes are equal by default.
THUMBS_MIX: dict[AnswerKind, int] = {kind: 3 if kind in ("friendly", "dry") else 1 for kind in KINDS}
DESIRABLE = 0.4
NOTE = (
    "Synthetic text written by a program of the Steerboard project (Apache-2.0). It describes no person and no real "
    "preference; use it to see the pipeline work, never to judge a method."
)


def write_demo_data(directory: Path, seed: int = 0) -> dict[str, int]:
    """Write a .jsonl file each of instructions, preferences, prompts and unpaired answers, and README.txt; returns the
    row counts."""
    directory.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    subjects = [(t, s, q) for t in TOPICS for s in SITUATIONS for q in QUESTIONS]
    kinds, weights = list(INSTRUCTION_MIX), list(INSTRUCTION_MIX.values())

    def instructions() -> Iterable[dict[str, Any]]:
        for kind in rng.choices(kinds, weights, k=INSTRUCTIONS):
            topic, situation, question = rng.choice(subjects)
            yield {
                "prompt": prompt_text(topic, situation, question),
                "response": write_answer(kind, topic, situation, rng),
            }

    def preferences() -> Iterable[dict[str, Any]]:
        written = 0
        while written < PAIRS:
            topic, situation, question = rng.choice(subjects)
            prompt = prompt_text(topic, situation, question)
            if rng.random() < SAME_FORM:
                form = rng.choice(FORMS)
                pair = [f(form, topic, situation, rng) for f in (write_answer, write_off_topic)]
            else:
                pair = [write_answer(kind, topic, situation, rng) for kind in rng.sample(KINDS, 2)]
            better, worse = sorted(pair, key=lambda answer: -quality(prompt, answer))
            if quality(prompt, better) - quality(prompt, worse) < LEAST_DIFFERENCE:
                continue
            written += 1
            if rng.random() < LABEL_NOISE:
                better, worse = worse, better
            yield {"prompt": prompt, "chosen": better, "rejected": worse}

    def prompts() -> Iterable[dict[str, Any]]:
        for topic, situation, question in rng.sample(subjects, PROMPTS):
            yield {"prompt": prompt_text(topic, situation, question)}

    def unpaired() -> Iterable[dict[str, Any]]:
        """One answer with a thumb, which is up for known quality of at least `DESIRABLE`."""
        for kind in rng.choices(list(THUMBS_MIX), list(THUMBS_MIX.values()), k=THUMBS):
            topic, situation, question = rng.choice(subjects)
            prompt = prompt_text(topic, situation, question)
            response = write_answer(kind, topic, situation, rng)
            right = rng.random() >= LABEL_NOISE
            yield {
                "prompt": prompt,
                "response": response,
                "desirable": (quality(prompt, response) >= DESIRABLE) == right,
            }

    # The last ones added come last: what was there before stays as it was.
    counts = {
        "instructions": _write(directory / "instructions.jsonl", instructions()),
        "preferences": _write(directory / "preferences.jsonl", preferences()),
        "prompts": _write(directory / "prompts.jsonl", prompts()),
        "unpaired": _write(directory / "unpaired.jsonl", unpaired()),
    }
    (directory / "README.txt").write_text(NOTE + "\n")
    return counts


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    return count
