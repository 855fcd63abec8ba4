"""What a report checks where a program knows how good each answer is."""

from __future__ import annotations

from typing import Any

from report_samples import report, row

from steerboard_contracts.report.claims import checks as checked
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.pipeline import MethodRow, PipelineReport


def checks(report: PipelineReport) -> list[tuple[str, bool]]:
    return [(check.text, check.met) for check in checked(report)]


SCORES = (-5.0, -2.5, 0.0, 2.5, 5.0)


def judged(method: MethodRow, mean: float, gain: tuple[float, float] | None = None, **changes: Any) -> MethodRow:
    known = {"quality_mean": mean, "quality_low": mean - 0.5, "quality_high": mean + 0.5}
    estimate = None if gain is None else Estimate(value=sum(gain) / 2, low=gain[0], high=gain[1], n=60)
    return method.model_copy(update={**known, "quality_gain": estimate, **changes})


def steered(means: tuple[float, ...], guidance: float = 1.0) -> list[MethodRow]:
    rows = [row("decision_transformer", 0.0, score=score) for score in SCORES]
    named = {"guidance": guidance, "variant": None if guidance == 1 else f"guidance {guidance:g}"}
    return [judged(row, mean, **named) for row, mean in zip(rows, means, strict=True)]


def of(*rows: MethodRow, **changes: Any) -> PipelineReport:
    base = judged(row("base", 0.0), 1.0)
    return report([base, *rows], **{"quality": "sentiment", "control": None, "labelled_rewards": None, **changes})


def by_words(report: PipelineReport) -> dict[str, bool]:
    return dict(checks(report))


def test_control_by_the_truth_must_rise_and_span_four_of_ten_with_intervals_apart() -> None:
    rises, short, bent = (-2.0, -1.0, 0.0, 1.0, 2.5), (-1.0, -0.5, 0.0, 1.0, 2.5), (-2.0, -1.0, 1.0, 0.5, 3.0)
    for means, met in ((rises, True), (short, False), (bent, False)):
        (words,) = [words for words in by_words(of(*steered(means, 3.0))) if "when asked for" in words]
        assert by_words(of(*steered(means, 3.0)))[words] is met
        assert words.startswith("By the truth, Decision Transformer (guidance 3) reaches -")
        assert "asked for -5, -2.5, 0, 2.5, 5" in words
    wide = [method.model_copy(update={"quality_low": -9.0, "quality_high": 9.0}) for method in steered(rises)]
    assert not next(met for words, met in checks(of(*wide)) if "when asked for" in words)


def test_each_guidance_is_a_claim_of_its_own() -> None:
    claims = checks(of(*steered((0.0, 0.1, 0.2, 0.3, 0.4)), *steered((-3.0, -1.0, 0.0, 1.0, 3.0), 3.0)))
    assert [met for words, met in claims if "when asked for" in words] == [False, True]


def test_a_gain_counts_when_its_whole_interval_is_above_the_baseline() -> None:
    rows = judged(row("dpo", 0.0), 2.0, (0.1, 1.9)), judged(row("rloo", 0.0), 1.2, (-0.1, 0.5))
    best = judged(row("base", 0.0, best_of=8), 3.0, (1.0, 3.0))
    gains = {words.split(" is ")[0]: met for words, met in checks(of(*rows, best)) if "the whole interval" in words}
    assert gains == {
        "By the truth, DPO": True,
        "By the truth, RLOO": False,
        "By the truth, demo-1.base (best of 8)": True,
    }


def test_the_reward_model_is_held_to_its_held_out_pairs_and_answers_to_the_variety_of_the_baseline() -> None:
    met = by_words(of(judged(row("dpo", 0.0), 2.0, (0.1, 1.9), distinct_2=0.39)))
    assert met["The reward model is right on 91% of 123 held-out pairs (at least 80%)"]
    (words,) = [words for words in met if "least varied" in words]
    assert words.startswith(
        "The least varied answers, of DPO, have 0.39 distinct pairs of words to 0.50 of demo-1.base"
    )
    assert not met[words]


def test_answers_are_at_most_five_points_more_often_empty_or_repeated_than_the_baselines() -> None:
    def faults(empty: float | None, repeated: float | None) -> list[tuple[str, bool]]:
        base = judged(row("base", 0.0), 1.0, empty=0.01, repeated=0.02)
        dpo = judged(row("dpo", 0.0), 2.0, (0.1, 1.9), empty=empty, repeated=repeated)
        claims = checks(of().model_copy(update={"methods": [base, dpo]}))
        return [(words, met) for words, met in claims if "empty or repeated" in words]

    ((words, met),) = faults(0.03, 0.04)
    assert met
    assert words == ("Most empty or repeated answers has DPO, 7.0% to 3.0% of demo-1.base (at most 5 points more)")
    assert [met for _, met in faults(0.0, 0.09)] == [met for _, met in faults(0.09, 0.0)] == [False]
    assert faults(None, None) == [], "a report of an earlier version"


def test_without_a_known_truth_and_on_synthetic_data_the_papers_claims_are_all() -> None:
    rows = [judged(row("dpo", 0.0), 2.0, (0.1, 1.9))]
    assert checks(of(*rows, quality=None)) == []
    assert checks(of(*rows, quality="synthetic")) == []
