"""What a judge's word is worth, and juries: figures that can be worked out by hand."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import numpy as np
import pytest
from sqlalchemy import select

from steerboard.evaluation.judge_tables import Judge, JudgeAnswer, Jury, Verdict
from steerboard.evaluation.report.document.contents import document_of
from steerboard.platform.database import transaction
from steerboard.sharing.html import page_of
from steerboard_contracts.report.sections.judges import JuryReport
from steerboard_statistics.agreement import kappa_interval
from support.rows.evaluation_rows import Evaluated

Make = Callable[..., Evaluated]


def two(evaluated: Make, **given: object) -> Evaluated:
    made = evaluated(**given)
    made.entrant("sft")
    made.entrant("dt")
    return made


def said(values: list[float]) -> list[dict[str, object]]:
    """dt against sft: 1, 0.5 or 0 on each prompt."""
    return [{"position": at, "a": "dt", "b": "sft", "value": value} for at, value in enumerate(values)]


def seat(made: Evaluated, name: str, judges: list[uuid.UUID], rule: str = "majority") -> None:
    with transaction(made.sessions) as session:
        session.add(
            Jury(
                evaluation_id=made.id, name=name, judges=[str(judge) for judge in judges], rule=rule, created_by="test"
            )
        )


def jury_of(made: Evaluated) -> JuryReport:
    (jury,) = made.report().juries
    return jury


def test_kappa_with_people_is_scikit_learns(evaluated: Make) -> None:
    made = two(evaluated, prompts=12)
    judge, people = [1, 1, 1, 0, 0, 0.5, 1, 0, 1, 1, 0.5, 0], [1, 1, 0, 0, 1, 0.5, 1, 0, 1, 0.5, 1, 0]
    made.judge("pairwise", said(judge))
    ranks = {at: {"dt": 1 if vote >= 0.5 else 2, "sft": 1 if vote <= 0.5 else 2} for at, vote in enumerate(people)}
    made.campaign({"ann": ranks})
    quality = made.report().judges[0].quality
    assert quality is not None
    (agreement,) = quality.people
    from sklearn.metrics import cohen_kappa_score  # slow to import, and every process collects this

    expected = cohen_kappa_score([str(verdict) for verdict in judge], [str(vote) for vote in people])
    assert agreement.source == "people"
    assert agreement.kappa.value == pytest.approx(expected)
    assert agreement.kappa.low < expected < agreement.kappa.high  # type: ignore[operator]
    # Eight agree, in three one side has a tie, and one is turned round.
    same = sum(a == b for a, b in zip(judge, people, strict=True))
    half = sum((a == 0.5) != (b == 0.5) for a, b in zip(judge, people, strict=True))
    assert agreement.agreement.value == pytest.approx((same + half / 2) / 12)


def test_kappa_covers_its_true_value_and_needs_two_labels() -> None:
    random = np.random.default_rng(0)
    covered = 0
    for seed in range(60):
        truth = random.choice([-1.0, 1.0], size=(60, 1))
        other = np.where(random.random((60, 1)) < 0.8, truth, -truth)  # kappa 0.6
        interval = kappa_interval(truth, other, seed=seed)
        covered += interval.low <= 0.6 <= interval.high  # type: ignore[operator]
    assert covered >= 53
    same = np.ones((20, 1))
    assert kappa_interval(same, same).value is None
    assert kappa_interval(np.full((5, 1), np.nan), same[:5]).n == 0


def test_cost_and_time_are_of_the_verdicts_that_the_judge_paid_for(evaluated: Make) -> None:
    made = two(evaluated, prompts=4)
    id_ = made.judge("pairwise", said([1, 1, 0, 1]), imported=None, settings={"prompt_price": 2.0})
    with transaction(made.sessions) as session:
        keys = ["k0", "k1", "k2", "k3"]
        verdicts = session.scalars(select(Verdict).where(Verdict.judge_id == id_).order_by(Verdict.position)).all()
        for verdict, key in zip(verdicts, keys, strict=True):
            verdict.answer_key = key
        for key, payer in zip(keys, (id_, id_, id_, None), strict=True):
            counts = {"prompt_tokens": 500_000, "completion_tokens": 9, "seconds": 1.5, "judge_id": payer}
            session.add(JudgeAnswer(project_id=made.project.id, key=key, content="x", **counts))
    quality = made.report().judges[0].quality
    assert quality is not None
    assert (quality.cost, quality.cost_per_verdict, quality.seconds_per_verdict) == (3.0, 1.0, 1.5)


def test_a_majority_decides_pair_by_pair_and_its_agreement_is_shown(evaluated: Make) -> None:
    made = two(evaluated, prompts=10)
    ids = [
        made.judge("pairwise", said(values), name=name)
        for name, values in (
            ("one", [1.0] * 8 + [0.0, 0.5]),
            ("two", [1.0] * 6 + [0.0] * 4),
            ("three", [0.0] * 2 + [1.0] * 6 + [0.0, 1.0]),
        )
    ]
    seat(made, "panel", ids)
    report = made.report()
    (jury,) = report.juries
    (pair,) = jury.comparison.pairs
    assert (jury.judges, jury.valid) == (["one", "two", "three"], True)
    # Prompts 0 to 7 by two or three; 8 lost by three; 9: a tie, a loss and a win.
    won = (pair.wins, pair.ties, pair.losses) if pair.a == "dt" else (pair.losses, pair.ties, pair.wins)
    assert won == (8, 1, 1)
    assert jury.alpha.n == 10
    assert -1 < (jury.alpha.value or 0) < 1
    sources = {(row.a_by, row.a, row.b_by, row.b) for row in report.agreement}
    assert ("judge", "one", "jury", "panel") in sources
    won = {row.entrant: row.jury_win_rate for row in report.methods}
    assert won["dt"]["panel"].value == pytest.approx(0.85)
    assert {name for row in report.methods for name in row.jury} == {"panel"}
    page = page_of(document_of(report))
    assert "Jury panel" in page
    assert "score, jury" in page
    assert "The majority of one, two and three." in page


def test_the_mean_of_judges_with_different_scales_weighs_them_alike(evaluated: Make) -> None:
    made = two(evaluated, prompts=10)
    made.scores({"sft": [1, 9] * 5, "dt": [2, 10] * 5}, name="wide")
    made.scores({"sft": [5, 5.2] * 5, "dt": [5.1, 5.3] * 5}, name="narrow")
    report = made.report()
    assert [judge.judge for judge in report.judges] == ["wide", "narrow"]
    with transaction(made.sessions) as session:
        ids = list(session.scalars(select(Judge.id).where(Judge.evaluation_id == made.id).order_by(Judge.id)))
    seat(made, "panel", ids, rule="mean")
    jury = jury_of(made)
    means = {row.entrant: row.mean.value for row in jury.comparison.scores}
    wide = np.array([1, 9, 2, 10.0])
    narrow = np.array([5, 5.2, 5.1, 5.3])
    z = (wide - wide.mean()) / wide.std() + (narrow - narrow.mean()) / narrow.std()
    assert means == {"sft": pytest.approx(z[:2].mean() / 2), "dt": pytest.approx(z[2:].mean() / 2)}


def test_an_invalid_judge_is_left_out_and_a_jury_of_one_has_no_figures(evaluated: Make) -> None:
    made = two(evaluated, prompts=10)
    good = made.judge("pairwise", said([1.0] * 10), name="good")
    broken = [{**row, "status": "unparsed", "value": None} for row in said([1.0] * 10)]
    bad = made.judge("pairwise", broken, name="bad")
    seat(made, "panel", [good, bad, uuid.uuid4()])
    report = made.report()
    (jury,) = report.juries
    assert (jury.valid, jury.judges, list(jury.left_out)) == (False, ["good"], ["bad"])
    assert jury.comparison.pairs == []
    assert any("needs 2 judges" in warning for warning in jury.warnings)
    assert any("1 of its judges were deleted" in warning for warning in jury.warnings)
    assert "Too few of its judges count." in page_of(document_of(report))
