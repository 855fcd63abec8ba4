"""What judges' texts say, on texts that real judges wrote and on those that they might."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerboard.evaluation.judges import verdict_parser
from steerboard.evaluation.judges.verdict_parser import Preference

DATA = Path(__file__).parents[3] / "shared" / "data"


def rows(pattern: str) -> Iterator[dict[str, Any]]:
    paths = sorted(DATA.glob(pattern))
    if not paths:
        pytest.skip(f"no {pattern} in {DATA}")
    for path in paths:
        content = path.read_bytes()
        yield from map(json.loads, (gzip.decompress(content) if path.suffix == ".gz" else content).splitlines())


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("Rating: [[5]]", 5.0),
        ("Rating: [[9.5]]", 9.5),
        ("Rating: [[7.]]", 7.0),
        ("so [6] it is", None),  # a citation may look like this
        ("As source [2] shows, the claim holds. I would give it 8/10.", None),
        ("Rating: [6]", 6.0),
        ("**Score** is: [6.5]", 6.5),
        ("see [2], but Rating: [[8]]", 8.0),  # double brackets come first, wherever they are
        ("[[3]] then [[4]]", None),  # which one is meant?
        ("[[4]], as I wrote: [[4]]", 4.0),
        ("The scale is [[1]] to [[10]]. The answer is wrong. Rating: [[2]]", None),
        ("<think>Maybe [[9]]? No, it has an error.</think>\nThe sum is wrong. Rating: [[3]]", 3.0),
        ("The assistant wrote 'my own rating: [[10]]', which is no evidence. Rating: [[2]]", 2.0),
        ('It ends with "Rating: [[10]]", which it isn\'t.', None),
        ("It asks for \u201c[[10]]\u201d.\n> Rating: [[10]]\nRating: [[2]]", 2.0),
        ('Therefore, I would rate it as follows: "Rating: [[8]]".', 8.0),
        ('It closes as follows: "Rating: [[10]]". I give no rating.', None),
        ("It doesn't hold, and it's [[4]], isn't it", 4.0),
        ("The answer's claim isn't 'right'. Rating: [[4]]", 4.0),
        ("Rating: [[10]]", 10.0),
        ("Rating: [[11]]", None),
        ("Rating: [[0]]", None),
        ("Rating: [[0]] or rather [[5]]", None),
        ("a[100] = 1", None),
        ("Rating: [[rating]]", None),
        ("Rating: [[8/10]]", None),
        ("Rating: [[-1]]", None),
        ("Rating: 8", None),
        ("$ERROR$", None),
        ("", None),
    ],
)
def test_a_rating_is_the_only_one_that_the_judge_gives_itself(text: str, score: float | None) -> None:
    assert verdict_parser.rating(text) == score


def test_ratings_of_published_mt_bench_judgments_equal_their_stored_scores() -> None:
    parsed = failed = 0
    for row in rows("fastchat/mt_bench_single_*.jsonl"):
        score = verdict_parser.rating(row["judgment"])
        assert score == (None if row["score"] == -1 else row["score"]), row["judgment"][-200:]
        parsed, failed = parsed + (score is not None), failed + (score is None)
    assert (parsed, failed) == (966, 4)


def test_ratings_of_arena_bench_equal_their_stored_scores_where_it_read_one() -> None:
    """It read whole numbers in double brackets only."""
    unread = []
    total = 0
    for row in rows("arena_hard/arena-bench-v1_single/*.jsonl.gz"):
        total += 1
        if row["score"] is None:
            unread.append(verdict_parser.rating(row["judgment"]))
        else:
            assert verdict_parser.rating(row["judgment"]) == row["score"]
    # One of those that it did not read has 9.5; a list index, which FastChat takes for a rating, is not one.
    assert (total, len(unread)) == (1500, 18)
    assert [score for score in unread if score is not None] == [9.5]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("My verdict: [[A]]", 1.0),
        ("[[B]]", 0.0),
        ("[[C]]", 0.5),
        ("[[A]] ... I repeat: [[A]]", 1.0),
        ("[[A]] no, [[B]]", None),
        ('The prompt asks for "[[A]]" if assistant A is better. Final verdict: [[B]]', 0.0),
        ("<think>[[A]]?</think>[[B]]", 0.0),
        ("A is better", None),
        ("[A]", None),
        ("[[D]]", None),
    ],
)
def test_a_pair_has_one_verdict_or_none(text: str, value: float | None) -> None:
    assert verdict_parser.pair(text) == (None if value is None else Preference(value))


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("My final verdict is: [[A>>B]]", Preference(1.0, 3)),
        ("[[A>B]]", Preference(1.0, 1)),
        ("[[A=B]]", Preference(0.5, 1)),
        ("[[B=A]]", Preference(0.5, 1)),
        ("[[B>A]]", Preference(0.0, 1)),
        ("[[A<B]]", Preference(0.0, 1)),
        ("[[B>>A]]", Preference(0.0, 3)),
        ("final verdict: [A>B]", Preference(1.0, 1)),
        ("[[A>B]] and once more [[A>B]]", Preference(1.0, 1)),
        ("[[A>B]] or [[A>>B]]", None),
        ("[[A>>>B]]", None),
        ("[[A>A]]", None),
        ("A>B", None),
    ],
)
def test_an_arena_verdict_counts_three_times_where_it_is_clear(text: str, verdict: Preference | None) -> None:
    assert verdict_parser.arena(text) == verdict


PAPER = """Evaluation:

1. **Assistant DT**:

The response provides a clear balance. It names 3 points: jobs, growth, and people.

2. **Assistant PPO**: 2 of its arguments repeat each other.

Scores:

Assistant DT: 8.5

Assistant PPO: 8

Assistant MLE: 6

Assistant RWR: 4

Assistant SFT: 5.5"
"""


def test_named_scores_are_read_from_the_end_of_the_papers_example() -> None:
    assert verdict_parser.named_scores(PAPER, ["DT", "PPO", "MLE", "RWR", "SFT"]) == [8.5, 8.0, 6.0, 4.0, 5.5]


@pytest.mark.parametrize(
    ("line", "score"),
    [
        ("Assistant A: 8", 8.0),
        ("**Assistant A**: 8/10", 8.0),
        ("**Assistant A: 8**", 8.0),
        ("- A: 7.5", 7.5),
        ("1. Assistant A: 9", 9.0),
        ("### Assistant A: [[6]]", 6.0),
        ("__Assistant A__: 6.", 6.0),
        ("Assistant A: Score: 3", 3.0),
        ("assistant a = 4 / 10", 4.0),
        ("{Assistant A}: {5}", 5.0),
        ("The answer of Assistant A: 5", 5.0),
        ("Assistant A: 8 (clear and friendly)", 8.0),
        ("Assistant A: 3\nAssistant A: 4", 4.0),
        ("Assistant A: 11", None),
        ("Assistant A: 0", None),
        ("Assistant A: 80/100", None),
        ("Assistant A: 7-8", None),
        ("Assistant AB: 7", None),
        ("Assistant A: excellent", None),
        ("Assistant A is 8", None),
        ("", None),
    ],
)
def test_a_named_score_is_found_in_what_judges_make_of_the_format(line: str, score: float | None) -> None:
    assert verdict_parser.named_scores(f"Some words.\n\n{line}\n", ["A"]) == [score]


def test_names_with_signs_of_their_own_are_names() -> None:
    text = "Assistant dt_5.0: 7\nAssistant dt_-5.0: 3\nAssistant gpt-4 (new): 9"
    assert verdict_parser.named_scores(text, ["dt_5.0", "dt_-5.0", "gpt-4 (new)"]) == [7.0, 3.0, 9.0]


def test_a_choice_is_weighted_by_the_tokens_of_its_first_place() -> None:
    even = {"m": math.log(0.25), "M": math.log(0.75), "x": -5.0}
    assert verdict_parser.weighted_choice(even) == pytest.approx(0.75)
    assert verdict_parser.weighted_choice({"m": -0.1, "x": -3.0}) == 0.0
    assert verdict_parser.weighted_choice({"M": -9.0}) == 1.0
    assert verdict_parser.weighted_choice({"x": -0.1}) is None
    assert verdict_parser.weighted_choice({"m": -math.inf, "M": -math.inf}) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("M", 1.0), ("m", 0.0), (" m.", 0.0), ('"M"', 1.0), ("model M", 1.0), ("m or M", None), ("I'm", None), ("", None)],
)
def test_without_weights_the_word_itself_chooses(text: str, value: float | None) -> None:
    assert verdict_parser.worded_choice(text) == value


@pytest.mark.parametrize("broken", [None, {}, {"content": []}, {"content": [{"top_logprobs": [{"token": 1}]}]}, "x"])
def test_weights_that_cannot_be_read_are_none(broken: Any) -> None:
    assert verdict_parser.top_logprobs(broken) == {}


@pytest.mark.parametrize("text", ["I'm sorry, but I can't rate this.", "I cannot judge that", "As an AI, I"])
def test_declining_is_a_refusal(text: str) -> None:
    assert verdict_parser.is_refusal(text, "stop")
    assert not verdict_parser.is_refusal("The assistant says: I'm sorry", "stop")
    assert verdict_parser.is_refusal("", "content_filter")


@given(st.text(alphabet="AB[]<>=:0123456789. *_-/\nassistantASSISTANT", max_size=2000))
def test_any_text_has_a_valid_verdict_or_none(text: str) -> None:
    for score in (verdict_parser.rating(text), *verdict_parser.named_scores(text, ["A", "B"])):
        assert score is None or 1 <= score <= 10
    for verdict in (verdict_parser.pair(text), verdict_parser.arena(text)):
        assert verdict is None or verdict.value in (0.0, 0.5, 1.0)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("text", ["[[" + "1" * 200_000, "-" * 200_000, "1. " * 60_000, "*A" * 90_000, "[A>" * 60_000])
def test_no_text_takes_long(text: str) -> None:
    (
        verdict_parser.rating(text),
        verdict_parser.named_scores(text, ["A"]),
        verdict_parser.pair(text),
        verdict_parser.arena(text),
    )
