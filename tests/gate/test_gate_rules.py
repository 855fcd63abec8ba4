"""The gate decides: pass, fail, or invalid, which beats fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

from steerboard.evaluation.gate.decision import decide
from steerboard.evaluation.gate.junit import junit_xml
from steerboard.evaluation.gate.rules import METRICS, GateRules, not_planned, parse_rules
from steerboard.platform.database import transaction
from steerboard_contracts.errors import BadInput
from steerboard_contracts.report.evaluation import EvaluationReport, Unfinished
from steerboard_contracts.report.gate import GateRuleResult, GateVerdict
from support.rows.ended_run import ended_run
from support.rows.evaluation_rows import Evaluated

Make = Callable[..., Evaluated]


@pytest.fixture
def report(evaluated: Make) -> EvaluationReport:
    """dt against sft over 20 prompts: it wins 15, ties 2, loses 3 by the judge, is 1.2 times as long, and its reward
    rises in 16."""
    made = evaluated(prompts=20)
    sft = made.model("our-sft", role="sft", method="sft")
    dt = made.model("our-dt", info={"normaliser": {"reward_model_hash": "reward-hash"}}, parent_id=sft.id)
    made.entrant("sft", letters=100, source="model", model_id=sft.id, content_hash="hash-of-sft")
    made.entrant("dt", letters=120, source="model", model_id=dt.id)
    made.scores({"sft": [5] * 20, "dt": [7] * 15 + [5] * 2 + [3] * 3})
    summary = {"margins": [1.0] * 9 + [-1.0]}
    made.rewards({"sft": [0.0] * 20, "dt": [1.0] * 16 + [-1.0] * 4}, summary=summary)
    made.campaign({"ann": {at: {"sft": 2, "dt": 1} for at in range(18)}})
    made.seen({"match": "near", "dataset": "things", "row": 0, "overlap": 0.9})
    return made.report()


def rule(metric: str, op: str = ">", value: Any = 0, **fields: Any) -> dict[str, Any]:
    return {"metric": metric, "op": op, "value": value, **fields}


def held(report: EvaluationReport, *rules: dict[str, Any], **given: Any) -> GateVerdict:
    return decide(report, GateRules(rules=list(rules), **given))


def judged(report: EvaluationReport, metric: str, op: str = ">", value: Any = 0, **fields: Any) -> GateRuleResult:
    return held(report, rule(metric, op, value, **fields)).rules[0]


def test_sources_that_a_recipe_does_not_make_are_named_before_it_starts() -> None:
    rules = [
        rule("win_rate", entrant="dt", vs="sft", by="judge", source="gpt-pairwise"),
        rule("win_rate", entrant="dt", vs="sft", by="judge"),
        rule("win_rate", entrant="dt", vs="sft", by="reward", source="independent"),
        rule("rank_correlation", by=["human", "reward"], source=["ranking-1", None]),
    ]
    assert not_planned(parse_rules(GateRules(rules=rules), ["dt", "sft"])) == [
        "rules.0: needs the judge `gpt-pairwise`; add it to the evaluation while the pipeline runs",
        "rules.3: needs the campaign `ranking-1`; add it to the evaluation while the pipeline runs",
    ]


def test_every_metric_reads_its_figure_from_the_report(report: EvaluationReport) -> None:
    both = {"entrant": "dt", "vs": "sft"}
    expected = {
        "win_rate": (16 / 20, {**both, "by": "judge"}),
        "mean_score": (6.2, {"entrant": "dt", "by": "judge"}),
        "reward_mean": (0.6, {"entrant": "dt"}),
        "length_mean": (120, {"entrant": "dt"}),
        "length_ratio": (1.2, both),
        "unparsed_rate": (0, {}),
        "reward_hacking": (False, both),
        "accuracy": (0.9, {}),
        "seen_share": (0.05, {}),
        "responses_missing": (0, {"entrant": "dt"}),
        "held_out_changes": (0, {}),
        "n": (18, {"by": "human"}),
    }
    for metric, (value, fields) in expected.items():
        op, bound = ("==", False) if metric == "reward_hacking" else (">=", 0)
        result = judged(report, metric, op, bound, **fields)
        assert result.value == pytest.approx(value), metric
        assert result.outcome == "pass", metric
    correlation = judged(report, "rank_correlation", by=["human", "judge"])
    assert (correlation.value, correlation.outcome) == (pytest.approx(1.0), "pass")
    assert judged(report, "rank_correlation", by=["human", "judge"], stat="kendall").value == pytest.approx(1.0)
    strength = judged(report, "bradley_terry", **both, by="judge")
    # Maximum likelihood of 16 wins in 20 with two entrants is 4 to 1.
    assert strength.value == pytest.approx(4.0, rel=1e-4)
    # Benchmarks and gains have tests of their own.
    named = {*expected, "rank_correlation", "bradley_terry", "lc_win_rate", "condition_gain"}
    named |= {"benchmark", "benchmark_accuracy"}
    assert named == set(METRICS)


def test_a_length_controlled_win_rate_is_a_share(evaluated: Make) -> None:
    made = evaluated(prompts=30)
    made.entrant("base", letters=[50 + at for at in range(30)])
    made.entrant("new", letters=[60 + 3 * at % 40 for at in range(30)])
    verdicts = [{"position": at, "a": "new", "b": "base", "value": 0.9 if at % 4 else 0.2} for at in range(30)]
    made.judge("alpaca_eval", verdicts, settings={"baseline": "base"})
    report = made.report()
    result = judged(report, "lc_win_rate", entrant="new", value=0.5)
    controlled = report.judges[0].alpaca_eval[0].length_controlled
    assert controlled is not None
    assert result.value == pytest.approx(controlled / 100)
    assert result.outcome == "pass"


def test_each_stat_is_another_figure_of_the_same_pair(report: EvaluationReport) -> None:
    row = report.judges[0].comparison.pairs[0]
    assert row.win_rate.high is not None
    figures = {
        stat: judged(report, "win_rate", ">=", 0, entrant="dt", vs="sft", by="judge", stat=stat).value
        for stat in ("ci_low", "n", "p", "p_holm")
    }
    assert figures == {"ci_low": pytest.approx(1 - row.win_rate.high), "n": 20, "p": row.p, "p_holm": row.p_holm}


@pytest.mark.parametrize(
    ("op", "bound", "outcome"),
    [
        (">", 0.8, "fail"),
        (">=", 0.8, "pass"),
        ("<", 0.8, "fail"),
        ("<=", 0.8, "pass"),
        ("==", 0.8, "pass"),
        ("!=", 0.8, "fail"),
    ],
)
def test_operators_mean_what_they_say(report: EvaluationReport, op: str, bound: float, outcome: str) -> None:
    result = judged(report, "win_rate", op, bound, entrant="dt", vs="sft", by="judge")
    assert result.outcome == outcome
    assert result.text == f"win_rate of dt vs sft by judge judge {op} 0.8"


def test_invalid_beats_fail_and_fail_beats_pass(report: EvaluationReport) -> None:
    good, bad = rule("length_ratio", "<", 1.3, entrant="dt"), rule("length_ratio", "<", 1.1, entrant="dt")
    unknown = rule("win_rate", entrant="dt", by="judge", source="nobody")
    assert held(report, good).verdict == "pass"
    assert held(report, good, bad).verdict == "fail"
    verdict = held(report, good, bad, unknown)
    assert verdict.verdict == "invalid"
    assert [rule.outcome for rule in verdict.rules] == ["pass", "fail", "invalid"]
    assert verdict.rules[2].why == "the evaluation has no judge 'nobody'; it has judge"


def test_what_is_not_finished_is_invalid_whatever_its_figures_say(report: EvaluationReport) -> None:
    report.unfinished_parts = [Unfinished(words="the answers of dt are under way")]
    verdict = held(report, rule("length_ratio", "<", 1.3, entrant="dt"))
    assert verdict.verdict == "invalid"
    assert verdict.rules[0].value == pytest.approx(1.2)
    assert verdict.why == ["the evaluation is not finished: the answers of dt are under way"]


def test_what_another_source_has_not_finished_leaves_a_rule_alone(report: EvaluationReport) -> None:
    words = "the verdicts of other failed: the endpoint kept failing"
    report.unfinished_parts = [Unfinished(words=words, by="judge", source="other")]
    by_judge = {"entrant": "dt", "vs": "sft", "by": "judge"}
    for needless in (
        rule("length_ratio", "<", 1.3, entrant="dt"),
        rule("reward_mean", entrant="dt"),
        rule("win_rate", value=0.5, entrant="dt", by="human"),
        rule("win_rate", value=0.5, source="judge", **by_judge),
        rule("rank_correlation", ">=", -1, by=["human", "judge"], source=[None, "judge"]),
    ):
        assert f"not finished: {words}" not in held(report, needless).rules[0].why, needless
    for needy in (
        rule("win_rate", value=0.5, **by_judge),
        rule("unparsed_rate", "<", 1.0),
        rule("win_rate", value=0.5, source="other", **by_judge),
        rule("rank_correlation", ">=", -1, by=["human", "judge"]),
        rule("reward_hacking", "==", False, entrant="dt"),
    ):
        verdict = held(report, rule("length_ratio", "<", 1.3, entrant="dt"), needy)
        assert (verdict.verdict, verdict.why) == ("invalid", [f"the evaluation is not finished: {words}"])
        assert [result.outcome for result in verdict.rules] == ["pass", "invalid"]


def test_an_open_campaign_concerns_the_rules_about_any_of_its_criteria(report: EvaluationReport) -> None:
    report.unfinished_parts = [Unfinished(words="1 item is left", by="human", source="round-1")]
    for source, concerned in ((None, True), ("round-1", True), ("round-1: helpful", True), ("round-10", False)):
        why = judged(report, "win_rate", entrant="dt", by="human", source=source).why
        assert ("1 item is left" in why) is concerned


def test_too_few_items_are_invalid(report: EvaluationReport) -> None:
    given = {"entrant": "dt", "by": "human"}
    assert judged(report, "win_rate", value=0.5, **given).outcome == "pass"
    few = judged(report, "win_rate", value=0.5, min_n=19, **given)
    assert (few.outcome, few.why) == ("invalid", "18 are too few to decide on; 19 are needed")
    assert held(report, rule("win_rate", value=0.5, **given), min_n=19).verdict == "invalid"


def test_a_judge_that_tells_too_little_is_invalid(report: EvaluationReport) -> None:
    judge = report.judges[0]
    judge.valid, judge.invalid_because = False, "4 of 40 verdicts cannot be used (4 unparsed): more than 5%"
    result = judged(report, "win_rate", entrant="dt", by="judge")
    assert (result.outcome, result.why) == ("invalid", f"judge judge is not valid: {judge.invalid_because}")
    assert judged(report, "unparsed_rate", "<", 0.05).outcome == "invalid"
    assert judged(report, "rank_correlation", by=["human", "judge"]).outcome == "invalid"
    assert judged(report, "win_rate", entrant="dt", by="human").outcome == "pass"


def test_missing_answers_are_invalid_beyond_a_share(report: EvaluationReport) -> None:
    report.entrants[1].missing, report.entrants[1].responses = 2, 18
    given = {"entrant": "dt", "by": "judge"}
    assert judged(report, "win_rate", **given).why == "2 of 20 answers of dt are missing, more than 5%"
    assert judged(report, "win_rate", max_missing=0.1, **given).outcome == "pass"
    assert judged(report, "responses_missing", "<=", 1, entrant="dt").outcome == "fail"


def test_an_alarm_that_cannot_be_told_is_invalid(report: EvaluationReport) -> None:
    report.hacking[0].alarm, report.hacking[0].reasons = None, ["no evidence"]
    result = judged(report, "reward_hacking", "==", False, entrant="dt")
    assert (result.outcome, result.why) == ("invalid", "no evidence")


def test_without_a_name_a_rule_must_hold_for_every_source_of_its_kind(evaluated: Make) -> None:
    made = evaluated(prompts=12)
    made.entrant("sft")
    made.entrant("dt")
    made.scores({"sft": [5] * 12, "dt": [7] * 12}, name="kind")
    made.scores({"sft": [5] * 12, "dt": [3] * 12}, name="harsh")
    report = made.report()
    both = judged(report, "win_rate", value=0.5, entrant="dt", by="judge")
    assert (both.outcome, both.value) == ("fail", 0.0)
    assert both.text.startswith("win_rate of dt vs sft by judge harsh")
    assert judged(report, "win_rate", value=0.5, entrant="dt", by="judge", source="kind").outcome == "pass"


def test_a_pinned_baseline_must_be_those_weights(report: EvaluationReport) -> None:
    given = GateRules(rules=[rule("length_ratio", "<", 1.3, entrant="dt")])
    assert decide(report, given, {"sft": ("hash-of-sft", "model our-sft")}).verdict == "pass"
    other = decide(report, given, {"sft": ("another", "model other-sft")})
    assert other.verdict == "invalid"
    assert other.why == ["the entrant sft is not the pinned model other-sft; it has content hash hash-of-sft"]
    assert decide(report, given, {"sft": (None, "model gone")}).verdict == "invalid"


@pytest.mark.parametrize(
    ("fields", "place", "words"),
    [
        ({"metric": "win_ratio"}, "rules.1.metric", "there are win_rate"),
        ({"entrant": "nobody"}, "rules.1.entrant", "there are sft, dt"),
        ({"vs": "nobody"}, "rules.1.vs", "there are sft, dt"),
        ({"vs": "dt"}, "rules.1.vs", "not compared with itself"),
        ({"stat": "median"}, "rules.1.stat", "value, ci_low"),
        ({"by": None}, "rules.1.by", "human, judge, jury, reward"),
        ({"by": "people"}, "rules.1.by", "'human'"),
        ({"by": ["human", "judge"]}, "rules.1.by", "give one"),
        ({"metric": "rank_correlation", "entrant": None, "vs": None}, "rules.1.by", "give two"),
        ({"op": "=>"}, "rules.1.op", "'>'"),
        ({"value": "high"}, "rules.1.value", ""),
        ({"value": float("nan")}, "rules.1.value", ""),
        ({"value": True}, "rules.1.value", "a number"),
        ({"value": 50}, "rules.1.value", "a share from 0 to 1"),
        ({"entrant": None}, "rules.1.entrant", "is of an entrant: sft, dt"),
        ({"metric": "reward_hacking", "by": None, "value": 1}, "rules.1.value", "true or false"),
        ({"metric": "reward_hacking", "by": None, "value": True}, "rules.1.op", "== or !="),
        ({"colour": "red"}, "rules.1.colour", "no such field"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_by_its_place(
    report: EvaluationReport, fields: dict[str, Any], place: str, words: str
) -> None:
    good = rule("win_rate", value=0.5, entrant="dt", vs="sft", by="judge")
    with pytest.raises(BadInput) as refused:
        held(report, good, {**good, **fields})
    first = refused.value.errors[0]
    assert first.location == place
    assert words in first.message


def test_rules_and_pins_without_sense_are_refused(report: EvaluationReport) -> None:
    with pytest.raises(BadInput) as refused:
        held(report, baselines={"nobody": {"model": "x"}, "sft": {"model": "x", "content_hash": "y"}})
    assert [fault.location for fault in refused.value.errors] == ["baselines.nobody", "baselines.sft", "rules"]


def test_junit_has_one_case_a_rule(report: EvaluationReport) -> None:
    report.evaluation = "vic\x01una & co"
    verdict = held(
        report,
        rule("length_ratio", "<", 1.3, entrant="dt"),
        rule("length_ratio", "<", 1.1, entrant="dt"),
        rule("win_rate", entrant="dt", by="judge", source="nobody"),
    )
    suite = ElementTree.fromstring(junit_xml(verdict)).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert [[child.tag for child in case] for case in suite] == [[], ["failure"], ["error"]]
    assert suite[1].get("name") == "length_ratio of dt vs sft < 1.1"
    assert suite[1][0].get("message") == "1.2 is not < 1.1"


def test_a_gain_by_the_condition_is_that_of_the_entrants_training(evaluated: Make) -> None:
    made = evaluated(prompts=20)
    gain = {"eval_condition_gain_shuffled": 0.35, "condition_gain_prompts": 100}
    ends = {"eval_condition_gain_shuffled_low": 0.25, "eval_condition_gain_shuffled_high": 0.45}
    with transaction(made.sessions) as session:
        run = ended_run(made.project.id, kind="train", name="dt", config={}, state="succeeded", reason="")
        session.add(run)
    trained = made.model("our-dt", info={"summary": gain | ends}, run_id=run.id)
    imported = made.model("their-dt", info={"summary": gain | ends})
    made.entrant("dt", source="model", model_id=trained.id, content_hash="a")
    made.entrant("theirs", source="model", model_id=imported.id, content_hash="b")
    report = made.report()
    result = judged(report, "condition_gain", stat="ci_low", value=0.2, entrant="dt")
    assert (result.outcome, result.value) == ("pass", 0.25)
    assert judged(report, "condition_gain", value=0.4, entrant="dt").outcome == "fail"
    missing = judged(report, "condition_gain", entrant="theirs")
    assert (missing.outcome, missing.value) == ("invalid", None)
    assert "no gain by its condition was measured in the training of theirs" in missing.why
