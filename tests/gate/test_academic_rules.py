"""Rules about academic benchmarks: the figure itself, and what was gained over the base and the SFT model."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from steerboard.evaluation.gate.decision import decide
from steerboard.evaluation.gate.rules import GateRules
from steerboard_contracts.errors import BadInput
from steerboard_contracts.report.academic import (
    AcademicDifference,
    AcademicFigure,
    AcademicMismatch,
    AcademicRow,
    AcademicTask,
    EntrantAcademic,
)
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.gate import GateRuleResult
from steerboard_statistics.benchmarks.academic import mean_of, paired_difference
from support.rows.evaluation_rows import Evaluated

OURS, THEIRS = [1] * 60 + [0] * 40, [1] * 50 + [0] * 50


def row(task: str, ours: list[int], theirs: list[int], of: int | None = None) -> AcademicRow:
    """Read in one way, and compared with the SFT model alone; its base model was asked in another way."""
    value = sum(ours) / len(ours)
    figure = AcademicFigure(
        name="strict", metric="exact_match", filter="strict-match", value=value, stderr=0.05, interval=mean_of(ours)
    )
    shape = AcademicTask(
        task=task,
        version="3.0",
        shots=8,
        template=False,
        items=len(ours),
        of=of or len(ours),
        items_hash="x",
        figures=[figure],
    )
    difference = AcademicDifference(
        vs="sft",
        model="our-sft",
        run_id=uuid.uuid4(),
        figure="strict",
        theirs=sum(theirs) / len(theirs),
        difference=paired_difference(ours, theirs),
    )
    now = dt.datetime.now(dt.UTC)
    unlike = AcademicMismatch(vs="base", model="our-base", run_id=uuid.uuid4(), unlike=["harness", "prompts"])
    return AcademicRow(
        run_id=uuid.uuid4(),
        ended_at=now,
        harness="0.4.13",
        task=shape,
        differences=[difference],
        not_compared=[unlike],
    )


@pytest.fixture
def report(evaluated: Callable[..., Evaluated]) -> EvaluationReport:
    made = evaluated(prompts=2)
    made.entrant("sft")
    made.entrant("dpo")
    document = made.report()
    document.academic = [
        EntrantAcademic(
            entrant="dpo",
            rows=[
                row("gsm8k", OURS, THEIRS),
                row("arc", THEIRS, OURS),
                row("few", [1] * 5, [0] * 5),
                row("tried", OURS, THEIRS, 1319),
            ],
        )
    ]
    return document


def held(report: EvaluationReport, **rule: Any) -> GateRuleResult:
    return decide(report, GateRules(rules=[{"entrant": "dpo", **rule}])).rules[0]


@pytest.mark.parametrize(
    ("rule", "outcome", "value"),
    [
        ({"benchmark": "gsm8k.strict", "min": 0.6}, "pass", 0.6),
        ({"benchmark": "gsm8k.strict", "min": 0.61}, "fail", 0.6),
        ({"metric": "benchmark", "benchmark": "gsm8k.strict", "stat": "stderr", "op": "<", "value": 0.1}, "pass", 0.05),
        ({"benchmark": "gsm8k.strict", "vs": "sft", "op": ">", "value": 0}, "pass", 0.1),
        ({"benchmark": "arc.strict", "vs": "sft", "op": ">", "value": 0}, "fail", -0.1),
        ({"benchmark": "gsm8k.strict", "not_below": "sft"}, "pass", None),
        ({"benchmark": "arc.strict", "not_below": "sft"}, "fail", None),
        ({"benchmark": "gsm8k.strict", "not_below": "base"}, "invalid", None),
        ({"benchmark": "gsm8k.flexible", "min": 0.1}, "invalid", None),
        ({"benchmark": "mmlu.acc", "min": 0.1}, "invalid", None),
        ({"benchmark": "few.strict", "min": 0.1}, "invalid", None),
        ({"benchmark": "gsm8k.strict", "entrant": "sft", "min": 0.1}, "invalid", None),
        ({"benchmark": "tried.strict", "min": 0.5}, "invalid", None),
        ({"benchmark": "tried.strict", "not_below": "sft"}, "invalid", None),
        ({"benchmark": "tried.strict", "min": 0.5, "partial": True}, "pass", 0.6),
        ({"benchmark": "tried.strict", "not_below": "sft", "partial": True}, "pass", None),
        ({"benchmark": "gsm8k.strict", "min": 0.6, "partial": True}, "pass", 0.6),
    ],
)
def test_a_rule_of_a_benchmark_holds_or_not(
    report: EvaluationReport, rule: dict[str, Any], outcome: str, value: float | None
) -> None:
    result = held(report, **rule)
    assert result.outcome == outcome, result
    if value is not None:
        assert result.value == pytest.approx(value)


def test_the_verdict_says_which_figure_and_what_is_missing(report: EvaluationReport) -> None:
    assert held(report, benchmark="gsm8k.strict", min=0.5).text == "gsm8k.strict of dpo >= 0.5"
    below = held(report, benchmark="arc.strict", not_below="sft")
    assert below.text == "arc.strict of dpo vs sft, ci_high >= 0"
    assert isinstance(below.value, float)
    assert -0.1 < below.value < 0
    assert "it has gsm8k.strict, arc.strict" in held(report, benchmark="mmlu.acc", min=0.5).why
    why = held(report, benchmark="gsm8k.strict", not_below="base").why
    assert "on the same items" in why
    assert "another version of lm-evaluation-harness, other prompts or generation options" in why
    assert "only 100 of the 1,319 items of tried were answered" in held(report, benchmark="tried.strict", min=0.5).why
    assert "no academic run of it has finished" in held(report, benchmark="mmlu.acc", entrant="sft", min=0.5).why


@pytest.mark.parametrize(
    ("rule", "place"),
    [
        ({"benchmark": "gsm8k.strict", "min": 0.5, "entrant": "nobody"}, "entrant"),
        ({"benchmark": "gsm8k.strict", "not_below": "dpo"}, "vs"),
        ({"benchmark": "gsm8k", "min": 0.5}, "benchmark"),
        ({"metric": "benchmark", "op": ">", "value": 0.5}, "benchmark"),
        ({"metric": "length_mean", "benchmark": "gsm8k.strict", "op": ">", "value": 0.5}, "benchmark"),
        ({"benchmark": "gsm8k.strict", "min": 0.5, "not_below": "sft"}, "min"),
        ({"benchmark": "gsm8k.strict", "min": 0.5, "by": "judge"}, "by"),
        ({"benchmark": "gsm8k.strict", "min": 0.5, "stat": "p"}, "stat"),
        ({"metric": "length_mean", "op": ">", "value": 0, "partial": True}, "partial"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(
    report: EvaluationReport, rule: dict[str, Any], place: str
) -> None:
    with pytest.raises(BadInput) as refused:
        held(report, **rule)
    assert f"rules.0.{place}" in [error.location for error in refused.value.errors]
