"""Each rule of cleaning on rows made by hand, and what holds for any rows: cleaning again changes nothing."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerboard.datasets.cleaning.analysis import Analysis, StreamedRow, analyse
from steerboard.datasets.cleaning.schemas import CleaningRules
from steerboard.datasets.hooks import EvaluationText

OFF: dict[str, Any] = dict.fromkeys(
    ("empty_round", "wrong_roles", "identical_sides", "evaluation_overlap", "contradiction", "duplicate"), False
) | {"near_duplicate": False}


def turns(*contents: str, first: str = "user") -> list[dict[str, str]]:
    others = {"user": "assistant", "assistant": "user"}
    roles = [first]
    while len(roles) < len(contents):
        roles.append(others[roles[-1]])
    return [{"role": role, "content": content} for role, content in zip(roles, contents, strict=True)]


def pair(prompt: str | list[dict[str, str]] = "How?", chosen: str = "good", rejected: str = "bad", **more: Any) -> Any:
    return {
        "prompt": turns(prompt) if isinstance(prompt, str) else prompt,
        "chosen": chosen,
        "rejected": rejected,
    } | more


def cleaned(
    rows: list[Any], rules: CleaningRules, evaluations: tuple[EvaluationText, ...] = (), held_out: tuple[int, ...] = ()
) -> Analysis:
    return analyse(
        lambda: (StreamedRow(n in held_out, row) for n, row in enumerate(rows)), len(rows), rules, evaluations
    )


def only(rule: str, rows: list[Any], **more: Any) -> list[int]:
    """The rows that one rule drops when all others are off."""
    given = {} if rule == "small_margin" else {rule: True}
    analysis = cleaned(rows, CleaningRules(**{**OFF, **given, **more}))
    assert set(analysis.counts()) <= {rule}
    return analysis.dropped_rows()


def test_turns_and_answers_without_visible_text_are_dropped() -> None:
    rows = [
        pair(),
        pair(chosen="\u200b \u00a0"),
        pair(rejected="\ufeff"),
        pair(turns("Hi", "\u2060", "How?")),
        pair(chosen="…"),
        pair(chosen="\u200bhere"),
    ]
    assert only("empty_round", rows) == [1, 2, 3]


def test_prompts_in_which_the_roles_do_not_alternate_are_dropped() -> None:
    system = [{"role": "system", "content": "Be brief."}]
    rows = [
        pair(turns("Hi", "Hello", "How?")),
        pair([*turns("Hi"), *turns("How?")]),
        pair(turns("Hello", "How?", first="assistant")),
        pair([*system, *turns("How?")]),
        pair([*system, *turns("Hello", "How?", first="assistant")]),
    ]
    assert only("wrong_roles", rows) == [1, 2, 4]


def test_equal_sides_are_dropped_whatever_the_spaces_around_them() -> None:
    assert only("identical_sides", [pair(chosen="a", rejected=" a\n"), pair(chosen="a", rejected="A")]) == [0]


def test_margins_below_the_threshold_are_dropped_and_missing_ones_are_kept() -> None:
    rows = [pair(margin=0.5), pair(margin=0.4), pair(margin=-1.0), pair()]
    assert only("small_margin", rows, min_margin=0.5) == [1, 2]


def test_of_equal_pairs_the_first_is_kept_whatever_their_margins() -> None:
    rows = [pair(margin=1.0), pair("Why?"), pair(" How?", margin=2.0), pair(chosen="bad", rejected="good")]
    analysis = cleaned(rows, CleaningRules(**{**OFF, "duplicate": True}))
    assert analysis.dropped_rows() == [2]
    assert (analysis.why(2).rule, analysis.why(2).of_row) == ("duplicate", 0)


def test_of_contradicting_pairs_the_more_frequent_preference_is_kept() -> None:
    good, bad = pair(), pair(chosen="bad", rejected="good")
    assert only("contradiction", [good, bad, good, pair("Why?")]) == [1]
    assert only("contradiction", [bad, good, pair("Why?")]) == [0, 1]
    analysis = cleaned([good, bad, good], CleaningRules())
    # Votes are counted before equal pairs become one.
    assert analysis.counts() == {"contradiction": 1, "duplicate": 1}
    assert (analysis.why(1).of_row, analysis.why(2).of_row) == (0, 0)


def test_a_row_that_another_rule_drops_has_no_vote() -> None:
    rows = [pair(margin=3.0), pair(chosen="bad", rejected="good", margin=0.1)]
    analysis = cleaned(rows, CleaningRules(min_margin=1.0))
    assert analysis.counts() == {"small_margin": 1}


def test_nearly_equal_pairs_are_dropped_with_their_similarity() -> None:
    long = " ".join(str(number) for number in range(100))
    rows = [pair(chosen=long), pair(chosen=long.replace("50", "fifty")), pair(chosen=f"{long} and so on and so on")]
    analysis = cleaned(rows, CleaningRules(**{**OFF, "near_duplicate": True}))
    assert analysis.dropped_rows() == [1, 2]
    assert [analysis.why(row).of_row for row in (1, 2)] == [0, 0]
    assert analysis.why(1).similarity == 91 / 101
    assert only("near_duplicate", rows, similarity=0.95) == []


def test_training_rows_with_a_prompt_of_an_evaluation_are_dropped() -> None:
    asked = "Explain in two short paragraphs why the sky looks blue at noon and red at dusk"
    evaluations = (
        EvaluationText("evaluation", "exam", 3, "What is it?"),
        EvaluationText("prompt_set", "mt-bench", 7, asked),
    )
    rows = [pair("what is IT"), pair("what is IT"), pair(turns("Hi", "Hello", f"Please: {asked}, thanks")), pair()]
    rules = CleaningRules(**{**OFF, "evaluation_overlap": True})
    analysis = cleaned(rows, rules, evaluations, held_out=(1,))
    assert analysis.dropped_rows() == [0, 2]
    one, other = analysis.why(0).evaluation, analysis.why(2).evaluation
    assert one is not None
    assert other is not None
    assert (one.type, one.name, one.position, one.match) == ("evaluation", "exam", 3, "exact")
    assert (other.type, other.name, other.position, other.match) == ("prompt_set", "mt-bench", 7, "near")


def test_each_rule_can_be_switched_off() -> None:
    rows = [
        pair(chosen="\u200b"),
        pair([*turns("Hi"), *turns("How?")]),
        pair(chosen="a", rejected="a"),
        pair(margin=0.1),
        pair(margin=0.1),
        pair(chosen="bad", rejected="good"),
    ]
    analysis = cleaned(rows, CleaningRules(**OFF), (EvaluationText("evaluation", "exam", 0, "How?"),))
    assert analysis.counts() == {}
    assert analysis.kept == len(rows)


TEXTS = st.sampled_from(["a", "b", "\u200b", "a ", " ".join("abcdefghij" * 3), " ".join("abcdefghij" * 3) + " k"])
ROWS = st.lists(
    st.builds(
        pair,
        st.sampled_from(["How?", "Why?", *map(str, range(3))]),
        TEXTS,
        TEXTS,
        margin=st.sampled_from([None, 0.0, 1.0]),
    ),
    max_size=30,
)
SWITCHES = st.fixed_dictionaries(dict.fromkeys(OFF, st.booleans()) | {"min_margin": st.sampled_from([None, 0.5])})


@given(ROWS, SWITCHES, st.sampled_from([0.5, 0.8, 1.0]))
def test_cleaning_what_is_clean_drops_nothing(rows: list[Any], switches: dict[str, Any], similarity: float) -> None:
    rules = CleaningRules(**switches, similarity=similarity)
    evaluations = (EvaluationText("evaluation", "exam", 0, "Why?"),)
    first = cleaned(rows, rules, evaluations)
    again = cleaned([row for at, row in enumerate(rows) if not first.is_dropped(at)], rules, evaluations)
    assert again.counts() == {}
    assert first.kept == again.rows
    # Nothing is counted twice, and what a row repeats is kept.
    assert first.kept + sum(first.counts().values()) == len(rows)
    for rule in ("duplicate", "near_duplicate"):
        for row in first.dropped_rows(rule):
            of_row = first.why(row).of_row
            assert of_row is not None
            assert of_row < row
            if rule == "near_duplicate":
                assert not first.is_dropped(of_row)


@given(st.sets(st.integers(0, 10**6), max_size=40))
def test_different_pairs_lose_nothing(numbers: set[int]) -> None:
    rows = [pair(f"Question {number}?", f"Answer {number}", f"No answer {number}") for number in numbers]
    assert cleaned(rows, CleaningRules()).kept == len(rows)


def test_the_order_of_many_like_rows_does_not_make_it_slow_or_unstable() -> None:
    """Rows that are alike, but not enough, are compared with a few others only."""
    drawn = random.Random(7)
    common = [f"w{number}" for number in range(60)]
    rows = []
    for number in range(400):
        words = [*common]
        for at in drawn.sample(range(60), 3):
            words[at] = f"x{number}.{at}"
        rows.append(pair("How?", " ".join(words), "no"))
    first = cleaned(rows, CleaningRules())
    kept = [row for at, row in enumerate(rows) if not first.is_dropped(at)]
    assert len(kept) > 300
    assert cleaned(kept, CleaningRules()).kept == len(kept)


@pytest.mark.parametrize("similarity", [0.49, 1.01])
def test_a_similarity_out_of_range_is_refused(similarity: float) -> None:
    with pytest.raises(ValueError, match="similarity"):
        CleaningRules(similarity=similarity)
