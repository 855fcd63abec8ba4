"""Rounds in a terminal."""

from __future__ import annotations

import io
import uuid

from rich.console import Console

from steerboard.cli.output.rounds_table import print_rounds
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.rounds import (
    RoundAnswers,
    RoundCost,
    RoundPolicy,
    RoundRow,
    RoundSelection,
    RoundsReport,
)
from steerboard_contracts.report.selection import DroppedGroups

SELECTION = RoundSelection(
    groups=100,
    kept_groups=90,
    rows=90,
    dropped=DroppedGroups(tied=7, single=3),
    reward="reward",
    units="raw",
    mean=Estimate(value=0.25, n=100),
    best=Estimate(value=1.5, n=100),
    characters=411.6,
)
ANSWERS = RoundAnswers(
    stage="report",
    judge="independent",
    independent=True,
    units="z",
    reward=Estimate(value=0.4, low=0.3, high=0.5, n=80),
    tokens=Estimate(value=55.0, n=80),
    against_previous=Estimate(value=0.625, low=0.51, high=0.72, n=80),
    against_start=None,
)
FOUND = RoundsReport(
    pipeline="iterative-1",
    start="sft",
    judge="independent",
    rounds=[
        RoundRow(
            number=1,
            state="succeeded",
            stage="tuned-1",
            stages=["tuned-1"],
            policy=RoundPolicy(id=uuid.uuid4(), name="iterative-1.tuned-1", in_production=True),
            selection=SELECTION,
            answers=ANSWERS,
            cost=RoundCost(device_seconds=12.34, sampled_tokens=12000, trained_tokens=3400),
        ),
        RoundRow(
            number=2,
            state="running",
            stage="tuned-2",
            stages=["tuned-2"],
            selection=SELECTION.model_copy(update={"units": "win_rate", "reward": "judge"}),
            cost=RoundCost(device_seconds=0.0, sampled_tokens=None, trained_tokens=None),
        ),
        RoundRow(
            number=3,
            state="skipped",
            reason="not run: after round 2, independent fell",
            stage="tuned-3",
            stages=["tuned-3"],
            cost=RoundCost(device_seconds=0.0, sampled_tokens=None, trained_tokens=None),
        ),
    ],
    result=1,
    verdict="After round 2, independent fell.",
    notes=["reward scored the answers."],
)


def printed(*, terminal: bool, width: int = 260) -> list[str]:
    out = io.StringIO()
    print_rounds(Console(file=out, width=width, force_terminal=terminal, color_system=None), FOUND)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_every_round_has_what_it_kept_its_figures_and_its_costs() -> None:
    lines = printed(terminal=False)
    first, second, third = (line.split("\t") for line in lines[1:4])
    assert first == [
        *("1", "succeeded", "90/100", "7 tied, 3 single", "0.25, 1.5", "412", "0.4 [0.3, 0.5] z"),
        *("62% [51%, 72%] of 80", "not measured", "12.3", "12,000", "3,400", "iterative-1.tuned-1 (in production)"),
    ]
    assert (second[4], second.count("not measured")) == ("0.25, 1.5 win rate", 3)
    # A round that is not run has nothing that could have been measured.
    assert (third[:3], third.count("not measured")) == (["3", "skipped", ""], 0)
    assert lines[-2:] == [FOUND.verdict, "reward scored the answers."]


def test_a_narrow_terminal_keeps_what_was_kept_and_the_win_rate() -> None:
    narrow = printed(terminal=True, width=80)
    assert max(map(len, narrow)) <= 80, narrow
    assert any("90/100" in line and "62% [51%, 72%] of 80" in line for line in narrow)
