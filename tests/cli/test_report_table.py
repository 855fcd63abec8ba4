"""A report in a terminal."""

from __future__ import annotations

import io
import re

import pytest
from report_samples import clear_win, report, row, with_examples
from rich.console import Console

from steerboard.cli.output.report_table import print_report, print_stages
from steerboard_contracts.report.pipeline import Report
from steerboard_contracts.report.summary import best_rows, checks, cost_line, verdict


def printed(found: Report, width: int = 140, **options: bool) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    print_report(console, found, "demo-1", **options)
    return out.getvalue()


def test_a_clear_winner_is_named_with_its_lead_over_sft_and_the_next_best() -> None:
    words = verdict(clear_win())
    assert words == (
        "Decision Transformer at 5.0 won with reward 1.20 [1.15, 1.25]. "
        "Decision Transformer at 5.0 is 1.00 above SFT and 0.60 above MLE with filtering, the next best."
    )


def test_no_winner_is_named_when_intervals_overlap() -> None:
    words = verdict(report([row("sft", 0.2), row("mle_filter", 0.6, 0.2), row("rwr", 0.5, 0.2)]))
    assert words.startswith("No winner is clear: the interval of MLE with filtering [0.40, 0.80] overlaps")
    assert "RWR [0.30, 0.70]" in words
    assert "won" not in words


def test_touching_intervals_are_no_clear_win() -> None:
    assert "No winner is clear" in verdict(report([row("sft", 0.0, 0.25), row("rwr", 0.5, 0.25)]))


def test_sft_can_win() -> None:
    assert verdict(report([row("sft", 1.0), row("rwr", 0.5)])).startswith("SFT won with reward 1.00")


def test_two_scores_of_one_policy_do_not_compete_with_each_other() -> None:
    rows = [row("sft", 0.0), *(row("decision_transformer", 1.0 + s / 100, 0.2, score=s) for s in (4.0, 5.0))]
    assert [r.score and r.score.score for r in best_rows(report(rows))] == [5.0, None]
    assert "Decision Transformer at 5.0 won" in verdict(report(rows))


def test_the_best_of_several_answers_is_a_row_of_its_own_and_no_baseline() -> None:
    rows = [row("sft", 1.5, best_of=8), row("sft", 0.5), row("mle_filter", 0.7)]
    rows[0].device_seconds = 25.0
    found = report(rows)
    assert [(r.method, r.best_of) for r in best_rows(found)] == [("sft", 8), ("mle_filter", None), ("sft", None)]
    assert verdict(found).startswith("SFT (best of 8) won with reward 1.50 [1.45, 1.55]. ")
    assert "1.00 above SFT and 0.80 above MLE with filtering" in verdict(found)
    assert "SFT 20.0, MLE with filtering 20.0, SFT (best of 8) 25.0." in cost_line(found)


def test_wins_are_against_the_reports_baseline_by_name() -> None:
    variant = row("sft", 0.2).model_copy(update={"variant": "long"})
    assert "wins against SFT (long)" in " ".join(printed(report([row("rwr", 0.5), variant])).split())
    assert "wins against the baseline" in printed(report([row("rwr", 0.5), row("dpo", 0.6)]))


def test_cost_is_given_for_each_method_once() -> None:
    assert cost_line(clear_win()).count("Decision Transformer") == 1


def test_log_probs_of_a_reference_are_said_to_be_paid_once() -> None:
    rows = [row("sft", 0.2), row("dpo", 0.6), row("ipo", 0.5)]
    assert "Log-probs" not in cost_line(report(rows))
    for place, shared in ((1, 0.0), (2, 12.5)):
        rows[place] = rows[place].model_copy(update={"log_prob_seconds": 12.5, "log_prob_seconds_shared": shared})
    assert cost_line(report(rows)).endswith(
        " Log-probs of the reference are part of that (DPO 12.5, IPO 12.5, paid once: IPO used those of another run)."
    )
    rows.append(row("kto", 0.4).model_copy(update={"log_prob_seconds": 14.0}))
    assert cost_line(report(rows)).endswith("IPO used those of another run; DPO and KTO each computed their own).")


def test_the_papers_claims_are_checked_and_failures_are_shown() -> None:
    assert all(met for _, met in checks(clear_win()))
    weak = clear_win().model_copy(update={"methods": [row("sft", 2.0), *clear_win().methods[3:]]})
    failed = [words for words, met in checks(weak) if not met]
    assert failed == ["Decision Transformer at 5.0 has its whole interval above those of SFT"]
    assert "not met" in printed(weak)


def test_the_papers_claim_is_about_the_methods_of_its_table_alone() -> None:
    further = [row("dpo", 3.0), row("kto", 3.0), row("sft", 3.0, best_of=8)]
    found = clear_win().model_copy(update={"methods": [*clear_win().methods, *further]})
    assert checks(found) == checks(clear_win())
    assert verdict(found).startswith("No winner is clear")


@pytest.mark.parametrize("width", [40, 60, 80, 99, 100, 140, 200])
def test_no_line_is_wider_than_the_terminal_and_every_method_has_its_row(width: int) -> None:
    lines = printed(with_examples(synthetic=True), width).splitlines()
    assert max(len(line) for line in lines) <= width
    for name in ("SFT", "MLE", "RWR", "D"):
        assert any(line.startswith(name) for line in lines)


def test_the_whole_story_is_there() -> None:
    text = printed(clear_win())
    for part in (
        "1.20 [1.15, 1.25]",
        "75%",
        "50%",
        "0.60",
        "91.2% of 123 held-out pairs",
        "90.0% of 120",
        "requested score",
        "Spearman of requested and achieved: 1.00",
        "over 100 held-out prompts",
    ):
        assert part in text.replace("\u00a0", " "), part


def test_synthetic_results_are_marked_and_their_answers_shown() -> None:
    text = printed(with_examples(synthetic=True))
    assert "synthetic demo data" in text
    assert text.index("A full answer.") < text.index("A thin one.") < text.index("Something else.")


def with_answers(*answers: tuple[str, float | None]) -> Report:
    """One example, its answers by (model, score)."""
    found = with_examples(synthetic=True)
    found.examples[0].answers = [
        {"entrant": model, "score": score, "text": f"{model} says {score}."} for model, score in answers
    ]
    return found


def test_three_scores_of_one_model_are_called_so_and_named() -> None:
    others = [("demo-1.sft", None), ("demo-1.long", 5.0), ("demo-1.long", 0.0)]
    text = printed(with_answers(*others, *(("demo-1.dt", score) for score in (-5.0, 0.0, 2.5, 5.0))))
    assert "One prompt, demo-1.dt, three scores" in text
    assert [text.index(f"demo-1.dt says {score}.") for score in (5.0, 0.0, -5.0)] == sorted(
        text.index(f"demo-1.dt says {score}.") for score in (5.0, 0.0, -5.0)
    )
    assert "demo-1.long says" not in text
    assert "demo-1.sft says" not in text


@pytest.mark.parametrize(
    "answers",
    [
        [("demo-1.sft", None), ("demo-1.dpo", None)],
        [("demo-1.sft", None), ("demo-1.dt", 5.0), ("demo-1.dt", 0.0)],
        [("demo-1.one", 5.0), ("demo-1.other", 0.0), ("demo-1.other", -5.0)],
    ],
)
def test_other_answers_are_counted_and_each_says_whose_it_is(answers: list[tuple[str, float | None]]) -> None:
    text = printed(with_answers(*answers))
    assert "three scores" not in text
    assert f"One prompt, {len(answers)} answers" in text
    for model, score in answers:
        whose = model if score is None else f"{model} at {score:.1f}"
        assert f"{whose} " in text
        assert f"{model} says {score}." in text


def test_texts_of_real_data_are_shown_only_on_request() -> None:
    assert "A full answer." not in printed(with_examples(synthetic=False))
    assert "A full answer." in printed(with_examples(synthetic=False), examples=True)
    assert "synthetic" not in printed(with_examples(synthetic=False))


def test_markup_in_texts_is_printed_as_it_is() -> None:
    found = with_examples(synthetic=True)
    found.examples[0].answers[0]["text"] = "[bold]not markup[/bold] [/nope]"
    assert "[bold]not markup[/bold] [/nope]" in printed(found)


def test_no_colours_are_written_where_they_are_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    print_report(Console(file=out, width=100, force_terminal=True), with_examples(synthetic=True), "demo-1")
    assert not re.search(r"\x1b\[(?:3|4|9|10)\d", out.getvalue())


def test_a_report_without_figures_still_says_why() -> None:
    empty = report([], control=None, warnings=["no figures yet: report is failed"])
    assert "no figures yet" in printed(empty)


def test_stages_show_what_was_reused() -> None:
    out = io.StringIO()
    found = clear_win()
    found.stages[0].reused = True
    print_stages(Console(file=out, width=80, force_terminal=True), found)
    assert "reused" in out.getvalue()
    assert "11.9" in out.getvalue()


def test_through_a_pipe_a_report_has_whole_names_in_tab_separated_rows_and_no_boxes() -> None:
    out = io.StringIO()
    print_report(Console(file=out, width=40, soft_wrap=True), with_examples(synthetic=True), "demo-1")
    (dt, *_) = [line for line in out.getvalue().splitlines() if line.startswith("Decision Transformer\t5.0")]
    assert dt.split("\t")[2:5] == ["1.20 [1.15, 1.25]", "44", "75%"]
    assert not re.search("[─│╭╰]", out.getvalue())
