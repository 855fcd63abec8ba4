"""A benchmark of prompts with several answers. The right ones are those with the highest reward of their group."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.errors import BadInput
from steerboard_contracts.report.benchmark import BenchmarkResult
from steerboard_contracts.run_kinds.benchmark import BenchmarkConfig
from steerboard_statistics.benchmarks.answers import Answered, benchmark_answers
from steerboard_statistics.benchmarks.tally import item_hash
from steerboard_workers.stages.models.open_models import open_reward_model
from steerboard_workers.stages.models.scoring import Scorable
from steerboard_workers.stages.rows.cached_scoring import KEY, Scorer
from steerboard_workers.stages.rows.resumable_rows import resumable_rows
from steerboard_workers.stages.rows.scored_answers import Answers, read_graded
from steerboard_workers.stages.rows.tournament import tournament
from steerboard_workers.stages.runtime import Stage

# Every two answers of a prompt meet.
_ALL = 10**6
_SLOT = "pairs"


def rewarded(stage: Stage, config: BenchmarkConfig) -> tuple[BenchmarkResult, int]:
    """Asks a reward model. Returns the result, and how many texts earlier attempts had scored. Raises `BadInput`."""
    answers = _answers(stage)
    with open_reward_model(stage, "reward", config, config.precision) as rewards, resumable_rows(stage, KEY) as partial:
        before = len(partial.rows)
        scorer = Scorer(stage, rewards, config.batch_tokens, partial)
        scorer.score(_texts(stage), len(answers.texts), "texts")
        scores = np.fromiter((scorer.value(text) for text in _texts(stage)), float)
    return _result(stage, answers, scores), before


def compared(stage: Stage, config: BenchmarkConfig) -> tuple[BenchmarkResult, int]:
    """Asks a model that compares in the same way: an answer's score is its mean probability to win against the
    others."""
    answers = _answers(stage)
    scores, facts, before = tournament(
        stage,
        "reward",
        answers,
        opponents=_ALL,
        seed=0,
        precision=config.precision,
        batch_tokens=config.batch_tokens,
    )
    return _result(stage, answers, scores).model_copy(update={"flip_rate": facts.flip_rate.value}), before


def _answers(stage: Stage) -> Answers:
    """Raises `BadInput` (`no_groups`, `bad_groups`, `single_answers`, and those of rewards)."""
    answers = read_graded(stage, _SLOT)
    if not any(wrong for _, wrong in _sides(answers)):
        raise BadInput(
            f"none of the {len(answers.groups)} prompts in {answers.name} has a right answer and a wrong one",
            code="single_answers",
            hint="The right answers of a prompt are those with the highest reward; others need a lower one.",
        )
    return answers


def _sides(answers: Answers) -> list[tuple[list[int], list[int]]]:
    """Rows of the right answers of each group, and of the others."""
    (grades,) = answers.rewards
    sides = []
    for rows in answers.groups:
        highest = grades[rows].max()
        right = [row for row in rows if grades[row] == highest]
        sides.append((right, [row for row in rows if grades[row] != highest]))
    return sides


def _texts(stage: Stage) -> Iterator[Scorable]:
    return (Scorable(row["prompt"], row["response"]) for row in stage.rows(_SLOT))


def _result(stage: Stage, answers: Answers, scores: NDArray[np.float64]) -> BenchmarkResult:
    firsts = {rows[0] for rows in answers.groups}
    # (source, item, hash of the prompt) of each group, by its first row.
    names: dict[int, tuple[str | None, str | None, str]] = {}
    for place, row in enumerate(stage.rows(_SLOT)):
        if place in firsts:
            names[place] = (row.get("source"), row.get("item"), item_hash(row["prompt"]))
    sides = _sides(answers)
    prompts = []
    for rows, (right, wrong) in zip(answers.groups, sides, strict=True):
        if wrong:
            source, item, prompt = names[rows[0]]
            hashes = [sorted(answers.texts[side].tolist()) for side in (right, wrong)]
            item_key = item_hash(source, item, prompt, *hashes)
            prompts.append(Answered(source, item, scores[right + wrong].tolist(), len(right), item_key))
    return benchmark_answers(prompts, left_out=len(sides) - len(prompts))
