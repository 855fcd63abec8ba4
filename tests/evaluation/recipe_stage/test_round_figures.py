"""The report of a pipeline's rounds: rates with intervals, who measured them, and the outcome in words."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from steerboard.evaluation.recipe_stage.decision import decided, decided_by
from steerboard.evaluation.recipe_stage.judge import Judged
from steerboard.evaluation.rounds.loader import Measured, RoundsFacts, StageFacts
from steerboard.evaluation.rounds.rounds_report import rounds_report
from steerboard.runs.errors import UnusableInput
from steerboard_contracts.recipes.rounds import PlannedRound, PlannedRounds
from steerboard_contracts.report.decision import RoundDecision
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.rounds import RoundPolicy
from steerboard_contracts.report.selection import DroppedGroups, SelectedReward, SelectionResult
from steerboard_contracts.report.tournament import Tournament

PROMPTS = 40
SOURCES = {number: uuid.UUID(int=number) for number in range(4)}


def decision(before: Any, after: Any) -> RoundDecision:
    return decided("referee", "raw", np.asarray(before), np.asarray(after), seed=0)


def facts(*, states: tuple[str, ...] = ("succeeded",) * 3, fell: int | None = None, **given: Any) -> RoundsFacts:
    rng = np.random.default_rng(0)
    level = rng.normal(size=PROMPTS)
    stages = {}
    for number, state in enumerate(states, start=1):
        stages[f"answers-{number}"] = StageFacts("generate", state, "why", 2.0, 500 if state == "succeeded" else None)
        stages[f"tuned-{number}"] = StageFacts("train", state, "why", 3.0, 70 if state == "succeeded" else None)
    decisions = {n: decision(level, level + 0.2 * (-1 if n == fell else 1)) for n in range(1, (fell or 0) + 1)}
    fields: dict[str, Any] = {
        "selections": {},
        "measured": [],
        "policies": {
            n: RoundPolicy(id=SOURCES[n], name=f"p.tuned-{n}", in_production=False)
            for n, state in enumerate(states, start=1)
            if state == "succeeded"
        },
        **given,
    }
    return RoundsFacts(
        pipeline="p",
        planned=PlannedRounds(
            start="sft",
            judge="$referee" if fell else None,
            rounds=[PlannedRound(number=n, stages=[f"answers-{n}", f"tuned-{n}"]) for n in (1, 2, 3)],
        ),
        stages=stages,
        decisions=decisions,
        sources=SOURCES,
        **fields,
    )


def measured(stage: str, *numbers: int, independent: bool = True) -> Measured:
    rng = np.random.default_rng(1)
    rewards = {SOURCES[n]: rng.normal(n, 1, size=PROMPTS) for n in numbers}
    tokens = {SOURCES[n]: np.full(PROMPTS, 10.0 * n) for n in numbers}
    return Measured(stage, "referee", independent, "raw", 0, rewards, tokens)


def test_win_rates_are_counted_by_prompt_with_wilsons_interval_where_nothing_ties() -> None:
    from statsmodels.stats.proportion import proportion_confint  # slow to import, and every process collects this

    report = measured("report", 0, 1, 2, 3)
    figures = rounds_report(facts(measured=[report])).rounds[1].answers
    assert figures is not None
    for rate, other in ((figures.against_previous, 1), (figures.against_start, 0)):
        wins = int((report.rewards[SOURCES[2]] > report.rewards[SOURCES[other]]).sum())
        low, high = proportion_confint(wins, PROMPTS, method="wilson")
        assert rate is not None
        assert (rate.value, rate.n) == (wins / PROMPTS, PROMPTS)
        assert (rate.low, rate.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))
    assert figures.tokens is not None
    assert figures.tokens.value == 20.0


def test_figures_come_from_the_last_evaluation_and_before_that_from_the_check_and_are_never_invented() -> None:
    check = measured("check-2", 0, 1, 2)
    rounds = rounds_report(facts(measured=[check])).rounds
    assert [row.answers.stage if row.answers else None for row in rounds] == ["check-2", "check-2", None]
    both = rounds_report(facts(measured=[measured("report", 2, 3), check])).rounds
    assert [row.answers.stage if row.answers else None for row in both] == ["check-2", "report", "report"]
    # The policy of round 1 is not in that evaluation.
    assert both[1].answers is not None
    assert both[1].answers.against_previous is None
    assert rounds_report(facts(measured=[check])).notes == []
    (note,) = rounds_report(facts(measured=[measured("report", 0, 1, independent=False)])).notes
    assert note.startswith("referee scored the answers that the rounds learned from")


def test_costs_are_those_of_the_rounds_own_stages() -> None:
    first, second, _ = rounds_report(facts(states=("succeeded", "running", "pending"))).rounds
    assert (first.cost.device_seconds, first.cost.sampled_tokens, first.cost.trained_tokens) == (5.0, 500, 70)
    assert (second.cost.sampled_tokens, second.cost.trained_tokens) == (None, None)


@pytest.mark.parametrize(
    ("given", "result", "verdict"),
    [
        ({}, 3, "3 of 3 rounds were run."),
        ({"states": ("succeeded", "running", "pending")}, None, "1 of 3 rounds have been run so far."),
        ({"states": ("succeeded", "failed", "failed")}, None, "1 of 3 rounds were run; round 2 failed."),
        ({"states": ("succeeded", "succeeded", "skipped"), "fell": 2}, 1, "The result is that of round 1."),
        ({"states": ("succeeded", "skipped", "skipped"), "fell": 1}, 0, "of sft, with which the rounds began."),
        ({"fell": 3}, 2, "The result is that of round 2."),
    ],
)
def test_the_outcome_is_put_into_words(given: dict[str, Any], result: int | None, verdict: str) -> None:
    rounds = rounds_report(facts(**given))
    assert rounds.result == result
    assert rounds.verdict.endswith(verdict)
    if given.get("fell"):
        assert rounds.verdict.startswith(f"After round {given['fell']}, referee fell from ")
        assert [row.kept for row in rounds.rounds if row.kept is not None].count(True) == result
    if given.get("fell") == 1:
        assert "Rounds 2 to 3 were not run." in rounds.verdict
        assert [row.reason for row in rounds.rounds] == [None, "why", "why"]


def test_a_judge_falls_only_beyond_the_noise_of_its_differences_by_prompt() -> None:
    rng = np.random.default_rng(2)
    level = rng.normal(0, 10, size=PROMPTS)
    noise = rng.normal(0, 0.3, size=PROMPTS)
    # Prompts differ by far more than policies do, which pairing takes away.
    assert decision(level, level - 0.5 + noise).fell
    assert not decision(level, level + 0.5 + noise).fell
    none = decision(level, level + noise - noise.mean() - 0.01)
    assert (none.fell, none.p is not None and none.p > 0.05) == (False, True)
    few = decision(level[:5], level[:5] - 3)
    assert (few.fell, few.p) == (False, None)
    assert "too few for a test" in few.words
    # A few large falls of the mean are no fall where most prompts rise.
    lopsided = level + np.where(np.arange(PROMPTS) < 2, -100.0, 0.5)
    assert not decision(level, lopsided).fell


def judged(values: Any, *, scores: Any = None, entrants: int = 2, valid: bool = True) -> Judged:
    rate = 0.0 if valid else 0.25
    return Judged("gpt", entrants, rate, valid, scores, np.asarray(values, dtype=float).reshape(-1, 1))


def test_a_judge_that_compares_falls_where_it_prefers_the_answers_before() -> None:
    # The first entrant, the one before, wins 30 of 40 prompts, ties 4 and loses 6; two were not judged.
    values = [1.0] * 30 + [0.5] * 4 + [0.0] * 6 + [np.nan] * 2
    decision = decided_by(judged(values), 2, seed=0)
    assert (decision.units, decision.prompts, decision.fell) == ("win_rate", PROMPTS, True)
    assert (decision.after.value, decision.before.value) == (pytest.approx(8 / 40), pytest.approx(32 / 40))
    assert decision.difference.value == pytest.approx(-24 / 40)
    assert decision.words.startswith("gpt preferred the new answers to those before in 20% of 40 prompts (p ")
    turned = decided_by(judged(1 - np.array(values)), 2, seed=0)
    assert (turned.fell, turned.after.value) == (False, pytest.approx(32 / 40))
    assert turned.words.endswith(", no fall by more than its noise")
    few = decided_by(judged([1.0] * 5), 2, seed=0)
    assert (few.fell, few.p) == (False, None)


def test_a_judge_that_grades_falls_as_a_reward_model_does() -> None:
    rng = np.random.default_rng(3)
    before = rng.integers(4, 10, size=PROMPTS).astype(float)
    grades = np.array([np.zeros(PROMPTS), before, before - 1]).T
    decision = decided_by(judged([], scores=grades, entrants=3), 3, seed=0)
    assert (decision.units, decision.fell) == ("score", True)
    assert decision.before.value == pytest.approx(before.mean())


def test_a_judge_that_is_gone_or_tells_too_little_decides_nothing() -> None:
    with pytest.raises(UnusableInput, match="has been deleted"):
        decided_by(None, 2, seed=0)
    with pytest.raises(UnusableInput, match="25% of the verdicts of judge gpt are unusable"):
        decided_by(judged([1.0], valid=False), 2, seed=0)
    with pytest.raises(UnusableInput, match="judge gpt gave no verdicts, so there is nothing to decide by"):
        decided_by(replace(judged([], valid=False), unparsed_rate=None), 2, seed=0)
    for silent in (0, 1):
        with pytest.raises(UnusableInput, match="on one of the entrants are unusable"):
            decided_by(replace(judged([1.0] * PROMPTS), silent={silent}), 2, seed=0)


def selection(scale: str, *rewards: str, judge: str | None = None) -> SelectionResult:
    """Its scores are 0.5 in the mean and 0.9 at best, the raw rewards of `rewards` 2 and 3."""

    def figure(value: float) -> Estimate:
        return Estimate(value=value, n=4)

    held = (
        Tournament(judge=judge, opponents=3, comparisons=9, ties=0, flips=1, flip_rate=figure(0.1)) if judge else None
    )
    return SelectionResult(
        keep="best",
        scale=scale,
        penalty=0,
        groups=4,
        answers=16,
        kept_groups=4,
        rows=4,
        dropped=DroppedGroups(),
        mean=figure(0.5),
        best=figure(0.9),
        unique_texts=figure(1.0),
        length_gap=figure(0.0),
        rewards=[
            SelectedReward(dataset="d", source=name, weight=1, mean=figure(2.0), best=figure(3.0)) for name in rewards
        ],
        tournament=held,
        curve=[],
        curve_groups=0,
    )


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (selection("zscore", "helpful"), ("helpful", "raw", 2.0, 3.0)),
        (selection("zscore", "helpful", "harmless"), ("helpful + harmless", "z", 0.5, 0.9)),
        (selection("probability", judge="preferring"), ("preferring", "win_rate", 0.5, 0.9)),
        # Answers that had rewards already, and that a preference model chose from.
        (selection("probability", "helpful", judge="preferring"), ("preferring", "win_rate", 0.5, 0.9)),
    ],
)
def test_a_round_shows_the_figures_of_whatever_chose_its_answers(
    result: SelectionResult, shown: tuple[str, str, float, float]
) -> None:
    chosen = rounds_report(facts(selections={1: result})).rounds[0].selection
    assert chosen is not None
    assert (chosen.reward, chosen.units, chosen.mean.value, chosen.best.value) == shown
