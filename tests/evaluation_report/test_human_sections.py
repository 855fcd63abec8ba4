"""The report's sections on people's rankings, on cases that can be worked out by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.rows.evaluation_rows import Evaluated

Make = Callable[..., Evaluated]


def three(evaluated: Make, **given: object) -> Evaluated:
    made = evaluated(**given)
    made.entrant("sft", letters=10)
    made.entrant("rwr", letters=20)
    made.entrant("dt", letters=30)
    return made


def test_annotators_are_averaged_within_an_item_and_ties_share_their_rank(evaluated: Make) -> None:
    made = three(evaluated, prompts=2)
    made.campaign(
        {
            "ann": {0: {"sft": 3, "rwr": 2, "dt": 1}, 1: {"sft": 1, "rwr": 1, "dt": 3}},
            "bob": {0: {"sft": 2, "rwr": 2, "dt": 1}},
        },
        overlap=2,
    )
    human = made.report().human[0]
    scores = {row.entrant: row.mean for row in human.comparison.scores}
    # Item 0: sft (1 + 1.5) / 2, rwr (2 + 1.5) / 2, dt 3. Item 1: 2.5, 2.5, 1.
    assert scores["sft"].value == pytest.approx((1.25 + 2.5) / 2)
    assert scores["rwr"].value == pytest.approx((1.75 + 2.5) / 2)
    assert scores["dt"].value == pytest.approx((3 + 1) / 2)
    assert scores["dt"].n == 2
    assert (human.rankings, human.done_items, human.items) == (3, 2, 2)


def test_figure_6_splits_the_ranks_that_a_tie_takes(evaluated: Make) -> None:
    made = three(evaluated, prompts=2)
    made.campaign({"ann": {0: {"sft": 3, "rwr": 2, "dt": 1}, 1: {"sft": 1, "rwr": 1, "dt": 3}}})
    shares = {row.entrant: row for row in made.report().ranks}
    assert shares["dt"].shares == pytest.approx([0.5, 0, 0.5])
    assert shares["sft"].shares == pytest.approx([0.25, 0.25, 0.5])
    assert shares["sft"].mean_score is not None
    assert shares["sft"].mean_score.value == pytest.approx((1 + 2.5) / 2)
    assert shares["dt"].n == 2


def test_each_annotator_has_times_biases_and_gold(evaluated: Make) -> None:
    made = three(evaluated, prompts=4)
    ranks = {"sft": 3, "rwr": 2, "dt": 1}
    made.campaign(
        {"ann": dict.fromkeys(range(3), ranks), "bob": {0: {"sft": 1, "rwr": 2, "dt": 2}}},
        gold={0: {"sft": 2, "rwr": 2, "dt": 1}},
        shown={("ann", 0): ("dt", "sft", "rwr"), ("ann", 1): ("rwr", "dt", "sft")},
        skipped=[("ann", 3)],
        flags=[("ann", 1)],
    )
    ann, bob = made.report().human[0].annotators
    assert (ann.annotator, ann.rankings, ann.skipped, ann.flagged, ann.median_seconds) == ("ann", 3, 1, 1, 11.0)
    # The best was shown first in one of three.
    assert ann.first_best.value == pytest.approx(1 / 3)
    assert ann.expected_first_best == pytest.approx(1 / 3)
    assert ann.longer_better.value == 1.0
    assert ann.gold.value == 1.0
    # Bob has one of the two pairs of known order the wrong way round and one as a tie.
    assert bob.gold.value == pytest.approx(0.25)
    assert bob.first_best.value == 1.0


def test_agreement_of_annotators_is_alpha_and_kappa(evaluated: Make) -> None:
    made = three(evaluated, prompts=6)
    up, down = {"sft": 3, "rwr": 2, "dt": 1}, {"sft": 1, "rwr": 2, "dt": 3}
    same = {at: up if at % 2 else down for at in range(6)}
    made.campaign({"ann": same, "bob": same}, overlap=2)
    agreed = made.report().human[0]
    assert agreed.alpha.value == pytest.approx(1.0)
    assert agreed.alpha.n == 6
    assert [(row.a, row.b, row.kappa, row.n) for row in agreed.kappas] == [("ann", "bob", 1.0, 18)]
    made.campaign({"cat": same, "dan": {at: down if at % 2 else up for at in range(6)}}, name="again", overlap=2)
    opposed = made.report().human[1]
    assert opposed.alpha.value is not None
    assert opposed.alpha.value < 0
    assert opposed.kappas[0].kappa == pytest.approx(-1.0)
    assert any("agree little" in warning for warning in opposed.warnings)


def test_a_winner_is_named_only_where_the_test_allows_it(evaluated: Make) -> None:
    made = three(evaluated, prompts=12)
    made.campaign({"ann": {at: {"sft": 3, "rwr": 2, "dt": 1} for at in range(12)}})
    clear = made.report().human[0].comparison
    assert clear.winner == "dt"
    made.campaign({"bob": {at: {"sft": 2, "rwr": 1 + at % 3, "dt": 3 - at % 3} for at in range(12)}}, name="unclear")
    unclear = made.report().human[1].comparison
    assert unclear.winner is None
    assert unclear.why.startswith("No winner")


def test_each_criterion_is_a_ranking_of_its_own(evaluated: Make) -> None:
    made = three(evaluated, prompts=3)
    made.campaign({"ann": {0: {"sft": 3, "rwr": 2, "dt": 1}}}, criteria=("richness", "clarity"))
    report = made.report()
    assert [(section.campaign, section.criterion) for section in report.human] == [
        ("people", "richness"),
        ("people", "clarity"),
    ]
    assert set(report.methods[0].human) == {"people: richness", "people: clarity"}
