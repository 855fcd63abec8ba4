"""The report of a pipeline in a terminal, and its rows for scripts."""

from __future__ import annotations

import io
import re

import pytest
from report_samples import clear_win, kept, report, row, with_examples
from rich.console import Console

from steerboard.cli.output.pipeline_result import print_report
from steerboard.cli.output.stage_table import print_stages
from steerboard.platform.database import new_id
from steerboard_contracts.report.claims import checks
from steerboard_contracts.report.flat import best_rows, cost_line
from steerboard_contracts.report.pipeline import EvaluationRef, PipelineReport
from steerboard_contracts.report.sections.costs import SharedRun
from steerboard_contracts.report.sections.headline import Headline


def printed(report_: PipelineReport, width: int = 140, examples: bool | None = None) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    print_report(console, kept(report_), examples)
    return out.getvalue()


def verdict(report_: PipelineReport) -> str:
    summary = kept(report_).summary
    assert summary is not None
    return summary.verdict


def test_the_verdict_is_the_evaluations_word_for_word_with_its_source_and_reservations() -> None:
    won = clear_win()
    assert won.headline is not None
    assert verdict(won) == won.headline.text
    text = " ".join(printed(won).split())
    assert f"{won.headline.text} (by reward model reward)" in text
    assert "! Reward model reward is circular." in text


def test_nobody_wins_where_the_evaluation_names_no_winner_whatever_the_intervals() -> None:
    words = "No winner: sft and rwr are within noise."
    undecided = report([row("sft", 0.0), row("rwr", 9.0)], headline=Headline(text=words, leader="rwr"))
    assert verdict(undecided) == words
    assert "won" not in printed(undecided)


def test_a_report_of_an_earlier_version_names_no_winner_and_the_evaluation_that_does() -> None:
    ref = EvaluationRef(id=new_id(), name="demo-1.report")
    words = verdict(report([row("sft", 0.0), row("rwr", 9.0)], evaluation=ref))
    assert words.endswith("does not say whether there is a winner; the evaluation demo-1.report does.")
    assert words in " ".join(printed(report([row("sft", 0.0), row("rwr", 9.0)], evaluation=ref)).split())


def test_two_scores_of_one_policy_do_not_compete_with_each_other() -> None:
    rows = [row("sft", 0.0), *(row("decision_transformer", 1.0 + s / 100, 0.2, score=s) for s in (4.0, 5.0))]
    assert [r.score and r.score.score for r in best_rows(report(rows))] == [5.0, None]


def test_the_best_of_several_answers_is_a_row_of_its_own_and_no_baseline() -> None:
    rows = [row("sft", 1.5, best_of=8), row("sft", 0.5), row("mle_filter", 0.7)]
    rows[0].total_device_seconds = 25.0
    with_best = report(rows)
    assert [(r.method, r.best_of) for r in best_rows(with_best)] == [("sft", 8), ("mle_filter", None), ("sft", None)]
    assert "SFT 5.0 / 20.0, MLE with filtering 5.0 / 20.0, SFT (best of 8) 5.0 / 25.0." in cost_line(with_best.methods)


def test_wins_are_against_the_reports_baseline_by_name() -> None:
    assert "Wins vs sft" in " ".join(printed(clear_win()).split())
    variant = row("sft", 0.2).model_copy(update={"variant": "long"})
    assert kept(report([row("rwr", 0.5), variant])).baseline == "SFT (long)"


def test_cost_is_given_for_each_method_once() -> None:
    assert cost_line(clear_win().methods).count("Decision Transformer") == 1


def test_a_method_costs_its_own_run_and_all_that_it_needs_with_what_is_shared_by_name() -> None:
    rows = [row("sft", 0.2), row("ppo", 0.6), row("base", 0.1)]
    sft, reward = (SharedRun(name=name, kind="train", device_seconds=s) for name, s in (("sft", 16.9), ("reward", 8.0)))
    costs = {"sft": (16.9, 16.9, [sft]), "ppo": (6.7, 31.6, [sft, reward]), "base": (None, None, [])}
    for method in rows:
        method.own_device_seconds, method.total_device_seconds, method.shared_runs = costs[method.method]
    costed = report(rows)
    assert cost_line(costed.methods) == (
        "Device-seconds, own run / with all it needs: demo-1.base unknown / unknown, SFT 16.9 / 16.9, PPO 6.7 / 31.6. "
        "Shared by several: sft 16.9, reward 8.0."
    )
    assert re.search(r"ppo +6\.7 +31\.6 +", printed(costed))


def test_no_costs_are_said_where_no_total_is_known() -> None:
    rows = [row("sft", 0.2), row("ppo", 0.6)]
    for method in rows:
        method.own_device_seconds, method.total_device_seconds = None, None
    assert cost_line(rows) == ""
    assert "Device-seconds" not in printed(report(rows))


def test_the_papers_claims_are_checked_and_failures_are_shown() -> None:
    assert all(check.met for check in checks(clear_win()))
    weak = clear_win().model_copy(update={"methods": [row("sft", 2.0), *clear_win().methods[3:]]})
    failed = [check.text for check in checks(weak) if not check.met]
    assert failed == ["Decision Transformer at 5.0 has its whole interval above those of SFT"]
    assert "not met" in printed(weak)


def test_the_papers_claim_is_about_the_methods_of_its_table_alone() -> None:
    further = [row("dpo", 3.0), row("kto", 3.0), row("sft", 3.0, best_of=8)]
    several = clear_win().model_copy(update={"methods": [*clear_win().methods, *further]})
    assert checks(several) == checks(clear_win())


@pytest.mark.parametrize("width", [40, 60, 80, 99, 100, 140, 200])
def test_no_line_is_wider_than_the_terminal_and_every_method_has_its_row(width: int) -> None:
    lines = printed(with_examples(synthetic=True), width).splitlines()
    assert max(len(line) for line in lines) <= width
    for name in ("sft", "mle_filter", "rwr", "d"):
        assert any(line.startswith(name) for line in lines)


def test_the_whole_story_is_there() -> None:
    text = printed(clear_win())
    for part in (
        "1.2 [1.15, 1.25]",
        "0.75",
        "0.6 [0.5, 0.7]",
        "91.2% of 123 held-out pairs",
        "other, the independent one, on 90.0% of 120",
        "in z units of the labelled data",
        "requested score",
        "Spearman of requested and achieved: 1.00",
        "100 prompts",
    ):
        assert part in " ".join(text.split()), part


def test_synthetic_results_are_marked_and_their_answers_shown() -> None:
    text = printed(with_examples(synthetic=True))
    assert "synthetic demo data" in text
    assert text.index("A full answer.") < text.index("A thin one.") < text.index("Something else.")


def with_answers(*answers: tuple[str, float | None]) -> PipelineReport:
    """One example, its answers by (model, score)."""
    answered = with_examples(synthetic=True)
    answered.examples[0].answers = [
        {"entrant": model, "score": score, "text": f"{model} says {score}."} for model, score in answers
    ]
    return answered


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
    hostile = with_examples(synthetic=True)
    hostile.examples[0].answers[0]["text"] = "[bold]not markup[/bold] [/nope]"
    assert "[bold]not markup[/bold] [/nope]" in printed(hostile)


def test_no_colours_are_written_where_they_are_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    print_report(Console(file=out, width=100, force_terminal=True), kept(with_examples(synthetic=True)), None)
    assert not re.search(r"\x1b\[(?:3|4|9|10)\d", out.getvalue())


def test_a_report_without_figures_still_says_why() -> None:
    empty = report([], control=None, warnings=["no figures yet: report is failed"])
    assert "no figures yet" in printed(empty)


def test_stages_show_what_was_reused() -> None:
    out = io.StringIO()
    won = clear_win()
    won.stages[0].reused = True
    print_stages(Console(file=out, width=80, force_terminal=True), won.stages)
    assert "reused" in out.getvalue()
    assert "11.9" in out.getvalue()


def test_through_a_pipe_a_report_has_whole_names_in_tab_separated_rows_and_no_boxes() -> None:
    out = io.StringIO()
    print_report(Console(file=out, width=40, soft_wrap=True), kept(with_examples(synthetic=True)), None)
    rewards = out.getvalue().partition("Reward model reward\n")[2]
    (dt, *_) = [line for line in rewards.splitlines() if line.startswith("decision_transformer_5\t")]
    assert dt.split("\t")[1:3] == ["1.2 [1.15, 1.25]", "0.75"]
    assert not re.search("[─│╭╰]", out.getvalue())


def test_reports_of_an_earlier_version_keep_their_rows() -> None:
    former = kept(with_examples(synthetic=True))
    assert former.methods == with_examples(synthetic=True).methods
    assert former.report is not None
    assert [entrant.name for entrant in former.report.entrants] == [method.name for method in former.methods]
    assert {row.entrant: row.reward["reward"].value for row in former.report.methods} == {
        method.name: method.reward_mean for method in former.methods
    }
    assert former.report.recipe is not None
    assert former.report.recipe.checks == checks(former)
