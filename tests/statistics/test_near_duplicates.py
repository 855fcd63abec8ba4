"""Near duplicates: each text of a record has to be nearly the same, and none is found by chance."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerboard_statistics.texts.near_duplicates import NearDuplicate, NearDuplicateIndex, comparable, grams, similarity

Record = tuple[str, str, str]
WORDS = [f"word{number}" for number in range(4000)]


def near_duplicates_of(records: Sequence[Record], threshold: float = 0.8) -> list[NearDuplicate]:
    index = NearDuplicateIndex(threshold)
    for record in records:
        index.add(record)
    candidates = index.candidates(np.ones(len(records), np.bool_))
    asked = [index.look_up(row, records[row]) for row in np.flatnonzero(candidates).tolist()]
    return [match for match in asked if match is not None]


def long_text(seed: int, length: int = 80) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=length))


def changed(text: str, at: int) -> str:
    words = text.split()
    words[at] = "another"
    return " ".join(words)


def test_a_text_is_its_word_5_grams_and_a_shorter_one_is_one_gram() -> None:
    assert grams("One two, three FOUR five six!") == ["one two three four five", "two three four five six"]
    assert grams("Yes, sir.") == ["yes sir"]
    assert grams(" !!! ") == ["!!!"]


def test_a_changed_word_in_a_long_answer_is_a_near_duplicate_of_the_first() -> None:
    first: Record = ("How?", long_text(1), long_text(2))
    records = [first, ("Why?", long_text(3), long_text(4)), ("how", changed(first[1], 40), first[2])]
    (duplicate,) = near_duplicates_of(records)
    # 5 of the 76 grams are others: 71 / 81.
    assert (duplicate.record, duplicate.of, duplicate.similarity) == (2, 0, 71 / 81)
    assert near_duplicates_of(records, threshold=0.9) == []


@pytest.mark.parametrize("field", [0, 1, 2])
def test_two_equal_texts_do_not_make_up_for_another_third_one(field: int) -> None:
    first = [long_text(1, 300), long_text(2, 300), long_text(3, 300)]
    other = [*first]
    other[field] = "something else entirely, but short"
    assert near_duplicates_of([tuple(first), tuple(other)]) == []


def test_swapped_answers_are_no_near_duplicate() -> None:
    assert near_duplicates_of([("How?", long_text(1), long_text(2)), ("How?", long_text(2), long_text(1))]) == []


def test_a_chain_of_small_changes_is_measured_against_what_is_kept() -> None:
    texts = [long_text(1)]
    for at in (10, 30, 50, 70):
        texts.append(changed(texts[-1], at))
    dropped = near_duplicates_of([("How?", text, "no") for text in texts])
    # One change is 71 / 81, two are 66 / 86: below 0.8, so the third text is kept, and the fourth repeats that one.
    assert [(duplicate.record, duplicate.of) for duplicate in dropped] == [(1, 0), (3, 2)]


@pytest.mark.parametrize(("threshold", "changes"), [(0.8, 1), (0.5, 5)])
def test_near_duplicates_at_the_threshold_are_found(threshold: float, changes: int) -> None:
    records: list[Record] = []
    for number in range(150):
        texts = [long_text(3 * number + field, 60 if threshold == 0.8 else 84) for field in range(3)]
        twin = texts
        for change in range(changes):
            twin = [changed(text, 10 + 12 * change) for text in twin]
        records += [tuple(texts), tuple(twin)]
    exact = [similarity(comparable(a), comparable(b)) for a, b in zip(records[::2], records[1::2], strict=True)]
    assert threshold <= min(exact) <= max(exact) < threshold + 0.05
    assert len(near_duplicates_of(records, threshold)) >= 149


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_similarity_is_the_jaccard_index_of_the_grams(one: list[str], other: list[str]) -> None:
    a, b = " ".join(one), " ".join(other) or "z"
    mine, theirs = set(grams(a)), set(grams(b))
    assert similarity(comparable([a]), comparable([b])) == len(mine & theirs) / len(mine | theirs)


def test_a_similarity_that_the_index_would_miss_is_refused() -> None:
    with pytest.raises(ValueError, match=r"between 0\.5 and 1"):
        NearDuplicateIndex(0.4)
