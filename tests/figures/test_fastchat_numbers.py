"""FastChat: single-answer files as they are on the net, pairs in both orders, and the Vicuna announcement's reviews."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path

import pytest

from steerboard_statistics.benchmarks import fastchat
from steerboard_statistics.benchmarks.fastchat import Games, Rating, Winner


def ratings(path: Path) -> list[Rating]:
    rows = [json.loads(line) for line in path.open()]
    return [Rating(row["question_id"], row["model"], row["turn"], row["score"], row["tstamp"]) for row in rows]


@pytest.mark.parametrize(
    ("file", "model", "turn_1", "turn_2", "average"),
    [
        ("phi3dpo", "phi-3-dpo", 8.3625, 8.0375, 8.2),
        ("medusa_vicuna", "vicuna-7b-v1.3", 6.73125, 5.475, 6.103125),
        ("medusa_vicuna", "vicuna-7b-v1.3-greedy", 6.51875, 5.2375, 5.878125),
        ("llama3_with_errors", "Meta-Llama-3-8B-Instruct-Normal", 8.275, 7.2625, 7.76875),
        ("llama3_with_errors", "Meta-Llama-3-8B-Instruct-Griffin", 3.1375, 2.2625, 2.7),
    ],
)
def test_single_answer_means(
    published: Path, file: str, model: str, turn_1: float, turn_2: float, average: float
) -> None:
    rows = ratings(published / "fastchat" / f"mt_bench_single_{file}.jsonl")
    summary = {row.model: row for row in fastchat.single_summary(rows)}[model]
    assert (summary.turns, summary.average) == ({1: turn_1, 2: turn_2}, average)
    assert (summary.counts, summary.missing) == ({1: 80, 2: 80}, [])


def test_files_without_duplicates_give_what_fastchat_shows(published: Path) -> None:
    """FastChat drops -1 and takes plain means by model, of a turn and of everything."""
    for file in ("phi3dpo", "medusa_vicuna"):
        rows = ratings(published / "fastchat" / f"mt_bench_single_{file}.jsonl")
        by_turn, by_model = defaultdict(list), defaultdict(list)
        for row in rows:
            if row.score is not None and row.score != -1:
                by_turn[row.model, row.turn].append(row.score)
                by_model[row.model].append(row.score)
        for summary in fastchat.single_summary(rows):
            assert summary.average == pytest.approx(
                sum(by_model[summary.model]) / len(by_model[summary.model]), abs=1e-12
            )
            for turn, mean in summary.turns.items():
                scores = by_turn[summary.model, turn]
                assert mean == pytest.approx(sum(scores) / len(scores), abs=1e-12)


def test_a_file_with_failed_and_repeated_judgments(published: Path) -> None:
    """330 rows: ten of one model are there twice, and the four that failed were judged again."""
    rows = ratings(published / "fastchat" / "mt_bench_single_llama3_with_errors.jsonl")
    assert sum(row.score == -1 for row in rows) == 4
    kept, old = fastchat.newest(rows)
    assert (len(kept), len(old)) == (320, 10)
    summaries = {summary.model: summary for summary in fastchat.single_summary(rows)}
    assert summaries["Meta-Llama-3-8B-Instruct-Normal"].superseded == 10
    assert summaries["Meta-Llama-3-8B-Instruct-Normal"].unparsed == 0


def test_the_newest_row_counts_wherever_it_stands() -> None:
    rows = [
        Rating(81, "m", 1, 9, at=20.0),
        Rating(81, "m", 1, 2, at=10.0),
        Rating(82, "m", 1, 4),
        Rating(82, "m", 1, 6),
    ]
    summary = fastchat.single_summary(rows)[0]
    assert (summary.turns, summary.superseded) == ({1: 7.5}, 2)


def test_what_failed_and_what_is_missing_is_counted_and_not_averaged() -> None:
    rows = [
        Rating(81, "a", 1, 8.5),
        Rating(81, "a", 2, -1),
        Rating(82, "a", 1, None),
        Rating(81, "b", 1, 3),
        Rating(81, "b", 2, 5),
        Rating(82, "b", 1, 4),
        Rating(82, "b", 2, 4),
    ]
    a, b = fastchat.single_summary(rows)
    assert (a.model, a.turns, a.average, a.n, a.unparsed, a.missing) == ("a", {1: 8.5}, 8.5, 1, 2, [(82, 2)])
    assert (b.average, b.missing) == (4.0, [])


def test_a_model_that_was_never_parsed_has_no_average() -> None:
    assert fastchat.single_summary([Rating(1, "m", 1, -1)])[0].average is None


def test_means_by_category() -> None:
    rows = [Rating(1, "m", 1, 4), Rating(1, "m", 2, 6), Rating(2, "m", 1, 9), Rating(3, "m", 1, -1)]
    assert fastchat.by_category(rows, {1: "math", 2: "writing", 3: "math"}) == {"m": {"math": 5.0, "writing": 9.0}}


def test_orders_that_disagree_are_a_tie_and_a_flip_a_tie_against_a_win_included() -> None:
    games: list[tuple[Winner, Winner]] = [
        ("model_1", "model_1"),
        ("model_1", "model_2"),
        ("model_1", "tie"),
        ("tie", "tie"),
        ("model_2", "model_2"),
        ("model_1", "model_1"),
        ("error", "model_1"),
    ]
    a, b = fastchat.pair_summary([Games("a", "b", g1, g2) for g1, g2 in games])
    assert (a.model, a.wins, a.ties, a.losses, a.flips, a.errors) == ("a", 2, 3, 1, 2, 1)
    assert a.win_rate_adjusted == pytest.approx(3.5 / 6)
    assert b.win_rate_adjusted == pytest.approx(2.5 / 6)
    assert a.flip_rate == pytest.approx(2 / 6)


@pytest.mark.parametrize(
    ("review", "totals", "counts"),
    [
        ("vicuna-7b_20230322-fp16/review_llama_vicuna-7b", (513.0, 677.5), (4, 2, 74)),
        ("vicuna-7b_20230322-fp16/review_alpaca-13b_vicuna-7b", (583.0, 684.5), (4, 5, 71)),
        ("vicuna-13b_20230322-new-hp-fp16/review_gpt35_vicuna-13b-20230322-new-hp-fp16", (684.0, 633.5), (42, 16, 22)),
        ("vicuna-13b_20230322-new-hp-fp16/review_bard_vicuna-13b-20230322-new-hp-fp16", (661.5, 662.0), (28, 13, 39)),
    ],
)
def test_pair_reviews_of_the_announcement(
    published: Path, review: str, totals: tuple[float, float], counts: tuple[int, int, int]
) -> None:
    path = published / "vicuna_blog" / "review" / f"{review}.jsonl"
    reviews = fastchat.review_summary([json.loads(line)["score"] for line in path.open()])
    assert (reviews.total_1, reviews.total_2) == totals
    assert (reviews.wins_1, reviews.ties, reviews.wins_2) == counts
    assert (reviews.n, reviews.unparsed) == (80, 0)


def test_reviews_that_were_not_parsed_are_left_out() -> None:
    summary = fastchat.review_summary([[8, 7.5], [-1, -1], None, [6, 6], [9, None], [math.nan, 2], [7, -1], [5]])
    assert (summary.total_1, summary.total_2, summary.n, summary.unparsed) == (14, 13.5, 2, 6)
    assert summary.share_1 == pytest.approx(14 / 13.5)
