"""Whether answers are still fluent: perplexity from kept log-probs, and what texts come to, worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from sqlalchemy import update

from steerboard.evaluation.report.blinding import blinded
from steerboard.evaluation.report.document.contents import document_of
from steerboard.evaluation.report.loading import texts as loading
from steerboard.evaluation.tables import Evaluation, Response
from steerboard.platform.database import new_id, transaction
from steerboard.sharing.blocks import Grid
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.sections.fluency import FluencyRow
from support.rows.evaluation_rows import Evaluated

Make = Callable[..., Evaluated]
# Columns of answers by (position, sample).
Columns = Mapping[tuple[int, int], Mapping[str, Any]]


def write(made: Evaluated, name: str, answers: Columns, samples: int = 1, **more: Any) -> None:
    """An entrant with these columns of its answers."""
    made.entrant(name, samples=samples, **more)
    with transaction(made.sessions) as session:
        for (position, sample), columns in answers.items():
            mine = Response.entrant_id == made.ids[name], Response.position == position, Response.sample == sample
            session.execute(update(Response).where(*mine).values(**columns))


def say(made: Evaluated, name: str, *texts: str | Sequence[str], **more: Any) -> None:
    """An entrant who answers so, a text or its turns for each prompt."""
    turns = [[text] if isinstance(text, str) else list(text) for text in texts]
    write(made, name, {(at, 0): {"turns": turn} for at, turn in enumerate(turns)}, **more)


def compare_with(made: Evaluated, model: str) -> None:
    kl_to = {"id": str(new_id()), "name": model, "content_hash": "its-hash"}
    with transaction(made.sessions) as session:
        session.execute(update(Evaluation).where(Evaluation.id == made.id).values(kl_to=kl_to))


def rows_of(report: EvaluationReport) -> dict[str, FluencyRow]:
    assert report.fluency is not None
    return {row.entrant: row for row in report.fluency.entrants}


def test_perplexity_is_over_all_tokens_with_an_interval_over_prompts(evaluated: Make) -> None:
    """Long answers count by their tokens, and all samples of a prompt together."""
    made = evaluated(prompts=10)
    compare_with(made, "base")
    read = {(at, n): (-(1.0 + at) * (2 + n), 2 + n) for at in range(10) for n in range(2)}
    write(
        made,
        "dt",
        {place: {"log_prob": value, "log_prob_tokens": tokens} for place, (value, tokens) in read.items()},
        samples=2,
        source="model",
    )
    nats, tokens = -sum(value for value, _ in read.values()), sum(tokens for _, tokens in read.values())
    report = made.report()
    assert report.fluency is not None
    assert report.fluency.perplexity_by == "base"
    row = rows_of(report)["dt"]
    assert row.why is None
    assert row.perplexity.n == 10
    assert row.perplexity.value == pytest.approx(math.exp(nats / tokens))
    assert row.perplexity.low is not None
    assert row.perplexity.high is not None
    # The mean of ten prompts with 1 to 10 nats a token is known to about one: Student's 2.26 x 2.87 / 3.
    assert math.log(row.perplexity.low) == pytest.approx(5.5 - 2.17, abs=0.3)
    assert math.log(row.perplexity.high) == pytest.approx(5.5 + 2.17, abs=0.3)


def test_an_answer_that_was_not_read_counts_for_no_perplexity(evaluated: Make) -> None:
    made = evaluated(prompts=2)
    compare_with(made, "base")
    write(made, "dt", {(0, 0): {"log_prob": -6.0, "log_prob_tokens": 3}}, source="model")
    perplexity = rows_of(made.report())["dt"].perplexity
    assert (perplexity.value, perplexity.n) == (pytest.approx(math.exp(2.0)), 1)


def test_who_has_no_perplexity_has_the_reason(evaluated: Make) -> None:
    made = evaluated(prompts=2)
    made.entrant("theirs")
    made.entrant("ours", source="model")
    made.entrant("waits", source="model", answered=0)
    # Beyond any number.
    absurd = {"log_prob": -1e6, "log_prob_tokens": 1}
    write(made, "absurd", {(0, 0): absurd, (1, 0): absurd}, source="model")
    report = made.report()
    assert {row.why for row in rows_of(report).values()} == {None}
    assert "Perplexity" not in str(document_of(report))
    compare_with(made, "base")
    rows = rows_of(made.report())
    assert "tokens of its answers are not known" in (rows["theirs"].why or "")
    assert "base did not read its answers" in (rows["ours"].why or "")
    assert "not there yet" in (rows["waits"].why or "")
    assert {row.perplexity.value for row in rows.values()} == {None}


def test_empty_answers_and_repeated_ones_are_shares_of_all(evaluated: Make) -> None:
    made = evaluated(prompts=6)
    say(made, "fluent", *(f"Answer number {at} is not another one." for at in range(6)))
    run = "we all like this; "
    # Two are equal except for blanks, one repeats itself, two are empty: they are equal too, and counted once.
    say(made, "hacked", "Yes.", " Yes.\n", run * 3, run * 2, "", " \n\t")
    rows = rows_of(made.report())
    assert (rows["fluent"].empty, rows["fluent"].repeated) == (0.0, 0.0)
    assert (rows["hacked"].empty, rows["hacked"].repeated) == (pytest.approx(2 / 6), pytest.approx(3 / 6))
    assert rows["hacked"].answers == 6


def test_equal_samples_of_one_prompt_are_not_repeated_and_other_entrants_do_not_count(evaluated: Make) -> None:
    made = evaluated(prompts=2)
    twice = {(at, n): {"turns": [f"Answer {at}."]} for at in range(2) for n in range(2)}
    write(made, "a", twice, samples=2)
    write(made, "b", {place: answer for place, answer in twice.items() if place[1] == 0})
    rows = rows_of(made.report())
    assert (rows["a"].answers, rows["a"].repeated, rows["b"].repeated) == (4, 0.0, 0.0)
    # Distinct n-grams are of the first answers, or more samples would look less varied.
    assert rows["a"].distinct_1 == rows["b"].distinct_1 == pytest.approx(3 / 4)


def test_any_turn_may_be_empty_or_repeat(evaluated: Make) -> None:
    made = evaluated(prompts=3, turns=2)
    say(made, "a", ("Yes.", ""), ("no no no no no no", "Fine."), ("Fine.", "Yes."))
    row = rows_of(made.report())["a"]
    assert (row.empty, row.repeated) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert row.distinct_2 == pytest.approx(1 / 5)


def test_tokens_and_cut_answers_are_known_or_not(evaluated: Make) -> None:
    made = evaluated(prompts=2, turns=2)
    told = {(0, 0): {"tokens": [3, 4], "finished": [True, False]}, (1, 0): {"tokens": [1, 2]}}
    write(made, "a", told)
    write(made, "b", {(at, 0): {"tokens": None, "finished": None} for at in range(2)})
    made.entrant("c", answered=0)
    rows = rows_of(made.report())
    assert (rows["a"].tokens, rows["a"].cut) == (5.0, 0.5)
    assert (rows["b"].tokens, rows["b"].cut) == (None, None)
    nothing = rows["c"]
    assert (nothing.answers, nothing.empty, nothing.repeated, nothing.distinct_1) == (0, None, None, None)


def test_the_rest_of_a_very_long_answer_is_not_read(evaluated: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "MOST_CHARACTERS", 40)
    made = evaluated(prompts=1)
    say(made, "a", f"{'x' * 40} no no no no no no")
    assert rows_of(made.report())["a"].repeated == 0.0


def test_files_have_one_table_and_a_blind_report_has_none(evaluated: Make) -> None:
    made = evaluated(prompts=2)
    compare_with(made, "base")
    same = {"turns": ["alike"], "log_prob": -2.0, "log_prob_tokens": 2}
    write(made, "dt", {(at, 0): same for at in range(2)}, source="model")
    made.entrant("theirs")
    report = made.report()
    (fold,) = (fold for fold in document_of(report).folds if fold.title == "Fluency")
    (grid,) = fold.blocks
    assert isinstance(grid, Grid)
    assert grid.heads[:2] == ("Entrant", "Perplexity under base")
    assert [cell.text for cell in grid.rows[0]] == ["dt", "2.72", "0.50", "0.00", "0.0%", "100.0%", "0.0%", "–"]
    assert grid.rows[1][0].detail.startswith("No perplexity: ")
    assert blinded(report, "salt").fluency is None
