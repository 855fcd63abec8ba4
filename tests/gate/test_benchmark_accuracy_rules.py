"""Rules about reward models on a benchmark: their accuracy, and whether one is worse than another."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

from steerboard.evaluation.gate.decision import decide
from steerboard.evaluation.gate.junit import junit_xml
from steerboard.evaluation.gate.rules import GateRules
from steerboard_contracts.errors import BadInput
from steerboard_contracts.report.benchmark import BenchmarkResult, FinishedBenchmark, PairedShare
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.gate import GateVerdict
from steerboard_statistics.paired_accuracy import paired_accuracy
from steerboard_statistics.proportions import proportion_interval
from support.rows.evaluation_rows import Evaluated

BETTER = [1] * 60 + [0] * 40, [1] * 40 + [0] * 60


def share(a: list[int], b: list[int]) -> PairedShare:
    comparison = paired_accuracy(a, b)
    difference = Estimate(value=comparison.difference, low=comparison.low, high=comparison.high, n=comparison.n)
    return PairedShare(name=None, n=comparison.n, a=comparison.a, b=comparison.b, difference=difference, p=comparison.p)


@pytest.fixture
def report(evaluated: Callable[..., Evaluated]) -> EvaluationReport:
    made = evaluated(prompts=2)
    made.entrant("sft")
    made.rewards({"sft": [1.0, 0.0]})
    section = made.report()
    result = BenchmarkResult(pairs=100, ties=0, accuracy=proportion_interval(60, 100))
    section.rewards[0].reward_model = "candidate"
    section.rewards[0].content_hash = "of-candidate"
    section.rewards[0].benchmarks = [
        FinishedBenchmark(
            run_id=uuid.uuid4(),
            dataset_id=uuid.uuid4(),
            dataset="rewardbench",
            ended_at=dt.datetime.now(dt.UTC),
            result=result,
        )
    ]
    return section


def held(report: EvaluationReport, **rule: Any) -> GateVerdict:
    differences = {
        ("of-candidate", "worse", "rewardbench"): share(*BETTER),
        ("of-candidate", "better", "rewardbench"): share(*BETTER[::-1]),
        ("of-candidate", "equal", "rewardbench"): share([1, 0] * 50, [0, 1] * 50),
        ("of-candidate", "old", "rewardbench"): "old has no finished benchmark",
    }
    given = {"metric": "benchmark_accuracy", "benchmark": "rewardbench", **rule}
    return decide(report, GateRules(rules=[given]), None, differences)


@pytest.mark.parametrize(
    ("rule", "outcome"),
    [
        ({"min": 0.6}, "pass"),
        ({"min": 0.61}, "fail"),
        ({"stat": "ci_low", "op": ">", "value": 0.5}, "pass"),
        ({"min": 0.6, "source": "candidate"}, "pass"),
        ({"min": 0.6, "source": "another"}, "invalid"),
        ({"min": 0.6, "benchmark": "other"}, "invalid"),
        ({"not_below": "worse"}, "pass"),
        ({"not_below": "better"}, "fail"),
        ({"not_below": "equal"}, "pass"),
        ({"not_below": "old"}, "invalid"),
        ({"not_below": "candidate"}, "invalid"),
        ({"vs": "equal", "stat": "ci_low", "op": ">=", "value": -0.02}, "fail"),
        ({"vs": "worse", "stat": "p", "op": "<", "value": 0.05}, "pass"),
        ({"vs": "worse", "op": ">", "value": 0, "min_n": 101}, "invalid"),
    ],
)
def test_a_rule_of_a_reward_models_benchmark_holds_or_not(
    report: EvaluationReport, rule: dict[str, Any], outcome: str
) -> None:
    assert held(report, **rule).verdict == outcome, held(report, **rule)


def test_a_worse_reward_model_is_a_failure_in_junit(report: EvaluationReport) -> None:
    verdict = held(report, not_below="better")
    (case,) = ElementTree.fromstring(junit_xml(verdict)).iter("testcase")
    assert case.get("name") == "benchmark_accuracy on rewardbench vs better by reward candidate, ci_high >= 0"
    (failure,) = case
    assert (failure.tag, failure.get("type")) == ("failure", "fail")


@pytest.mark.parametrize(
    ("rule", "place"),
    [
        ({"min": 0.5, "benchmark": None}, "benchmark"),
        ({"min": 60}, "value"),
        ({"min": 0.5, "entrant": "sft"}, "entrant"),
        ({"min": 0.5, "by": "judge"}, "by"),
        ({"stat": "p", "op": "<", "value": 0.05}, "stat"),
        ({"stat": "stderr", "op": "<", "value": 0.05}, "stat"),
    ],
)
def test_what_makes_no_sense_of_a_reward_model_is_refused(
    report: EvaluationReport, rule: dict[str, Any], place: str
) -> None:
    with pytest.raises(BadInput) as refused:
        held(report, **rule)
    assert f"rules.0.{place}" in [error.location for error in refused.value.errors]
