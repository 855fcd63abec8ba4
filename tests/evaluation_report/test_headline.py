"""What a report comes to: who wins, by which source, with which reservations."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import update

from steerboard.evaluation.judge_tables import Jury
from steerboard.evaluation.report.sections.headline import headline
from steerboard.evaluation.tables import Response
from steerboard.platform.database import transaction
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.sections.headline import Headline, Reservation
from support.rows.evaluation_rows import Evaluated

Make = Callable[..., Evaluated]
BOTH = {"sft": 2, "dt": 1}


def headline_of(report: EvaluationReport) -> Headline:
    assert report.headline is not None
    return report.headline


def against(headline: Headline, code: str) -> Reservation:
    return next(reservation for reservation in headline.reservations if reservation.code == code)


def codes(headline: Headline) -> list[str]:
    return [reservation.code for reservation in headline.reservations]


@pytest.fixture
def made(evaluated: Make) -> Evaluated:
    """There is no reason to doubt what is found in it."""
    evaluation = evaluated(prompts=24)
    evaluation.entrant("sft")
    evaluation.entrant("dt")
    evaluation.seen()
    return evaluation


def test_people_answer_before_judges_and_judges_before_rewards(made: Evaluated) -> None:
    made.rewards({"sft": [1.0] * 24, "dt": [0.0] * 24}, name="rm")
    assert headline_of(made.report()).by == "reward"
    made.scores({"sft": [7] * 24, "dt": [4] * 24})
    assert headline_of(made.report()).by == "judge"
    made.campaign({"ann": dict.fromkeys(range(24), BOTH)}, name="helpful")
    headline = headline_of(made.report())
    assert (headline.by, headline.source, headline.winner, headline.over) == ("human", "helpful", "dt", ["sft"])
    assert headline.margin is not None
    assert (headline.margin.over, headline.margin.win_rate.value, headline.items) == ("sft", 1.0, 24)
    assert headline.text.startswith("dt wins: against sft, its only rival, its win rate is 100.0% [")
    assert [(source.by, source.source, source.winner) for source in headline.sources] == [
        ("human", "helpful", "dt"),
        ("judge", "judge", "sft"),
        ("reward", "rm", "sft"),
    ]


def test_nothing_stands_against_a_clear_winner(made: Evaluated) -> None:
    made.campaign({"ann": dict.fromkeys(range(24), BOTH), "bob": dict.fromkeys(range(24), BOTH)})
    headline = headline_of(made.report())
    assert (headline.winner, headline.reservations) == ("dt", [])


def test_who_is_within_noise_is_named_and_nobody_wins(made: Evaluated) -> None:
    made.entrant("mle")
    made.scores({"sft": [5, 6] * 12, "dt": [6, 5] * 11 + [6, 6], "mle": [1] * 24})
    headline = headline_of(made.report())
    assert (headline.winner, headline.leader, headline.tied) == (None, "dt", ["sft"])
    assert headline.text.startswith("No winner: dt and sft are within noise. dt has the highest mean; against sft")
    assert headline.margin is not None
    said = against(headline, "not_significant")
    assert said.value == headline.margin.p_holm
    assert said.text == "dt does not differ significantly from sft."


def test_the_closest_of_several_rivals_is_the_margin(made: Evaluated) -> None:
    made.entrant("mle")
    made.scores({"sft": [1] * 24, "dt": [9] * 24, "mle": [8] * 20 + [9] * 4})
    headline = headline_of(made.report())
    assert (headline.winner, headline.over) == ("dt", ["sft", "mle"])
    assert "against mle, the closest of 2 rivals, its win rate is 91.7%" in headline.text


def test_few_items_and_an_open_campaign(evaluated: Make) -> None:
    made = evaluated(prompts=24)
    made.entrant("sft")
    made.entrant("dt")
    made.campaign({"ann": dict.fromkeys(range(8), BOTH)}, name="helpful", state="open")
    headline = headline_of(made.report())
    assert against(headline, "few_items").value == 8
    assert against(headline, "campaign_open").text == "Campaign helpful is open: 8 of 8 items are ranked."
    assert against(headline, "contamination_unchecked").value is None


@pytest.mark.parametrize(("ranked", "words"), [(1, "With only 1 item, "), (2, "With only 2 items, ")])
def test_few_items_are_counted_in_words(made: Evaluated, ranked: int, words: str) -> None:
    made.campaign({"ann": dict.fromkeys(range(ranked), BOTH)})
    assert against(headline_of(made.report()), "few_items").text.startswith(words)


def test_a_judge_that_prefers_another_than_people_do(made: Evaluated) -> None:
    made.campaign({"ann": dict.fromkeys(range(24), BOTH)})
    made.scores({"sft": [7] * 24, "dt": [4] * 24}, name="strict")
    texts = [
        reservation.text
        for reservation in headline_of(made.report()).reservations
        if reservation.code == "sources_disagree"
    ]
    assert texts[0].startswith("Judge strict prefers sft: there the win rate of dt over it is 0.0%")
    assert texts[1].startswith("Judge strict gives the same verdict on only 0.0%")


def test_a_source_by_which_no_one_wins_does_not_confirm_the_winner(made: Evaluated) -> None:
    made.campaign({"ann": dict.fromkeys(range(24), BOTH)})
    made.rewards({"sft": [0.0] * 24, "dt": [0.0] * 24}, name="known quality", content_hash="known quality")
    made.rewards({"sft": [0.0] * 24, "dt": [1.0] * 24}, name="agrees", content_hash="other")
    headline = headline_of(made.report())
    assert (headline.by, headline.winner) == ("human", "dt")
    assert [reservation.text for reservation in headline.reservations if reservation.code == "not_confirmed"] == [
        f"Reward model known quality does not confirm that dt wins. {headline.sources[1].text}"
    ]
    assert headline.sources[1].text.startswith("No winner: ")
    assert against(headline, "not_confirmed").value == 0.5


def test_a_source_that_does_not_compare_the_winner_need_not_confirm_it(made: Evaluated) -> None:
    made.entrant("mle")
    made.entrant("late")
    ranks = {"sft": 3, "dt": 2, "mle": 1, "late": 4}
    made.campaign({"ann": dict.fromkeys(range(24), ranks)})
    made.scores({"sft": [5] * 24, "dt": [5] * 24})
    headline = headline_of(made.report())
    assert (headline.winner, codes(headline)) == ("mle", [])


def answer_with(made: Evaluated, name: str, first: int, **columns: Any) -> None:
    """The entrant's answers to the first prompts."""
    with transaction(made.sessions) as session:
        mine = Response.entrant_id == made.ids[name], Response.position < first
        session.execute(update(Response).where(*mine).values(**columns))


@pytest.mark.parametrize(
    ("code", "columns", "enough", "words"),
    [
        ("repeated", {"turns": ["For a a a"]}, 13, "are repeated"),
        ("empty", {"turns": [" "]}, 3, "are empty"),
        ("cut", {"finished": [False]}, 3, "were cut at the token limit"),
    ],
)
def test_a_winner_whose_answers_are_repeated_empty_or_cut(
    made: Evaluated, code: str, columns: dict[str, Any], enough: int, words: str
) -> None:
    made.scores({"sft": [4] * 24, "dt": [7] * 24})
    answer_with(made, "dt", enough - 1, **columns)
    assert code not in codes(headline_of(made.report()))
    answer_with(made, "dt", enough, **columns)
    headline = headline_of(made.report())
    share = enough / 24
    assert (headline.winner, against(headline, code).value) == ("dt", pytest.approx(share))
    assert against(headline, code).text == (
        f"{share:.1%} of the answers of dt {words}; of all entrants' it is {share / 2:.1%}."
    )
    made.changed()
    answer_with(made, "sft", 24, **columns)
    assert against(headline_of(made.report()), code).text.endswith(f"it is {(1 + share) / 2:.1%}.")


def test_most_answers_are_repeated_though_not_the_winners(made: Evaluated) -> None:
    made.entrant("mle")
    made.scores({"sft": [4] * 24, "dt": [7] * 24, "mle": [3] * 24})
    for name in ("sft", "mle"):
        answer_with(made, name, 24, turns=["For a a a"])
    headline = headline_of(made.report())
    assert headline.winner == "dt"
    assert against(headline, "repeated").text == "66.7% of all entrants' answers are repeated."


def test_an_invalid_judge_neither_answers_nor_disagrees(made: Evaluated) -> None:
    unread = [{"position": at, "a": name, "status": "unparsed"} for at in range(24) for name in ("sft", "dt")]
    made.judge("single", unread, name="broken")
    assert headline_of(made.report()).by is None
    made.campaign({"ann": dict.fromkeys(range(24), BOTH)})
    headline = headline_of(made.report())
    assert (headline.source, codes(headline)) == ("people", [])


def test_a_winner_that_is_longer(evaluated: Make) -> None:
    made = evaluated(prompts=24)
    made.entrant("sft", letters=100)
    made.entrant("dt", letters=[150, 160] * 12)
    made.scores({"sft": [4] * 24, "dt": [7] * 24})
    said = against(headline_of(made.report()), "length")
    assert (said.value, said.text) == (
        pytest.approx(1.55),
        "The answers of dt are 1.55 times as long as those of sft.",
    )


@pytest.mark.parametrize("order", [("a", "x", "b"), ("a", "b", "x"), ("b", "a", "x")])
def test_the_highest_mean_that_is_behind_a_rival_has_its_figures_against_that_one(
    evaluated: Make, order: tuple[str, ...]
) -> None:
    """a beats x 25 to 5, b beats x 20 to 10 and a 16 to 14."""
    made = evaluated(prompts=30)
    for name in order:
        made.entrant(name, letters=100 if name == "b" else 400)
    won = {("a", "x"): 25, ("b", "x"): 20, ("b", "a"): 16}
    verdicts = [
        {"position": at, "a": one, "b": other, "value": float(at < wins)}
        for (one, other), wins in won.items()
        for at in range(30)
    ]
    made.judge("pairwise", verdicts)
    headline = headline_of(made.report())
    assert (headline.winner, headline.leader, headline.tied) == (None, "a", ["b"])
    assert headline.margin is not None
    assert (headline.margin.over, headline.margin.win_rate.value) == ("b", pytest.approx(14 / 30))
    assert headline.text.startswith("No winner: a has the highest mean (0.65), but ")
    assert "not ahead of b. Against b its win rate is 46.7% [" in headline.text
    assert against(headline, "length").text == "The answers of a are 4.00 times as long as those of b."
    assert against(headline, "not_significant").text == "a does not differ significantly from b."


def test_prompts_of_the_training_data_and_a_circular_reward_model(evaluated: Make) -> None:
    made = evaluated(prompts=24)
    made.entrant("sft")
    chosen = {"n": 4, "reward": "rm", "content_hash": "reward-hash"}
    made.entrant("best", decoding={"best_of": chosen})
    made.rewards({"sft": [0.0] * 24, "best": [1.0] * 24}, name="rm")
    made.seen({"match": "exact", "dataset": "things", "row": 1, "overlap": 1.0})
    headline = headline_of(made.report())
    assert against(headline, "contamination").value == pytest.approx(1 / 24)
    assert against(headline, "circular").text == (
        "Reward model rm is circular: best learned from it, or had answers chosen by it."
    )


def test_a_jury_of_a_judge_that_an_entrant_learned_from_is_circular(evaluated: Make) -> None:
    made = evaluated(prompts=24)
    made.entrant("sft")
    made.entrant("best", decoding={"best_of": {"n": 4, "reward": "prefers", "content_hash": "its-hash"}})
    made.seen()
    wins = [{"position": at, "a": "best", "b": "sft", "value": 1.0} for at in range(24)]
    taught = made.judge("preference", wins, name="prefers", content_hash="its-hash")
    other = made.judge("pairwise", wins, name="other")
    with transaction(made.sessions) as session:
        judges = [str(taught), str(other)]
        session.add(Jury(evaluation_id=made.id, name="panel", judges=judges, rule="majority", created_by="test"))
    report = made.report()
    assert [jury.trained for jury in report.juries] == [["best"]]
    assert any(warning.startswith("circular: best learned from") for warning in report.juries[0].warnings)
    # An independent judge answers before it; where there is none it answers, with its reservation.
    told = headline_of(report)
    assert (told.by, told.source, codes(told)) == ("judge", "other", [])
    report.judges = [judge for judge in report.judges if judge.trained]
    told = headline(report)
    assert (told.by, told.source) == ("jury", "panel")
    assert against(told, "circular").text == (
        "Jury panel is circular: best learned from one of its judges, or had answers chosen by it."
    )


def test_an_independent_reward_model_answers_before_a_judge_that_an_entrant_learned_from(evaluated: Make) -> None:
    made = evaluated(prompts=24)
    made.entrant("sft")
    made.entrant("best", decoding={"best_of": {"n": 4, "reward": "prefers", "content_hash": "its-hash"}})
    made.seen()
    wins = [{"position": at, "a": "best", "b": "sft", "value": 1.0} for at in range(24)]
    made.judge("preference", wins, name="prefers", content_hash="its-hash")
    assert headline_of(made.report()).by == "judge"
    made.rewards({"sft": [1.0] * 24, "best": [0.0] * 24}, name="rm")
    told = headline_of(made.report())
    assert (told.by, told.source, told.winner, codes(told)) == ("reward", "rm", "sft", ["sources_disagree"])


def test_without_an_assessment_nobody_wins(made: Evaluated) -> None:
    headline = headline_of(made.report())
    assert (headline.text, headline.by, headline.winner) == ("No one has assessed the answers yet.", None, None)


def test_what_could_not_be_tested_is_told_in_the_words_of_the_comparison(evaluated: Make) -> None:
    made = evaluated(prompts=3)
    made.entrant("sft")
    made.entrant("dt")
    made.scores({"sft": [4] * 3, "dt": [7] * 3})
    headline = headline_of(made.report())
    assert (
        headline.text
        == "No winner: dt has the highest mean (7), but only 3 items compare it with sft, and a test needs 6."
    )
    assert (headline.margin, headline.leader) == (None, "dt")


def test_a_kept_report_has_its_headline(made: Evaluated) -> None:
    from steerboard.evaluation.report import assembly

    made.scores({"sft": [4] * 24, "dt": [7] * 24})
    computed = made.report()
    kept = assembly.kept(made.sessions, made.id)
    assert kept is not None
    assert kept.headline == computed.headline
    assert computed.computed_at <= dt.datetime.now(dt.UTC)
