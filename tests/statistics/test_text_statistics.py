"""Prompts in training texts, whatever their spelling; and how varied texts are."""

from __future__ import annotations

import itertools
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steerboard_statistics.texts.diversity import distinct_share, plain_words, repeats_itself
from steerboard_statistics.texts.overlap import Match, PromptIndex
from steerboard_statistics.texts.text_normal import normalise, words

LONG = (
    "Imagine you are participating in a race with a group of people. If you have just overtaken the second person, "
    "what's your current position? Where is the person you just overtook?"
)


@pytest.mark.parametrize(
    "text",
    [
        "Don't stop -- the café's open!",
        "don’t  stop,\nthe CAFÉ'S open",
        "DON'T STOP the cafe\u0301's open…",
        "\tDon't; stop: [the] café's \u201copen\u201d",
    ],
)
def test_spellings_of_the_same_words_are_the_same(text):
    assert normalise(text) == "don t stop the café s open"


def test_what_nfkc_and_case_folding_make_equal_is_equal():
    assert normalise("\uff21\uff22\uff23 ﬁne STRASSE") == normalise("abc fine straße")
    assert words("snake_case x2") == ["snake", "case", "x2"]
    assert words("今天, 天气") == ["今", "天", "天", "气"]
    assert normalise(" ?! ") == "?!"


# Letters that fold, compose, expand or split, and plain ones.
odd_texts = st.text("aAzZ09 _-'?\n\u0301\u0307éÉßẞİıﬁ①Ⅷµſ\u212b\uff21Σς漢字カﾞกำ한\U0001f600", max_size=30)


@given(odd_texts)
@settings(max_examples=200, deadline=None)
def test_normalising_twice_is_normalising_once(text):
    assert normalise(normalise(text)) == normalise(text)


@given(st.text([chr(c) for c in range(128)], max_size=30))
@settings(max_examples=200, deadline=None)
def test_ascii_takes_a_shortcut_to_the_same_words(text):
    assert words(text) == words(text + " é")[:-1]


def test_an_exact_prompt_is_found_and_others_are_not():
    index = PromptIndex([LONG, "Who wrote Hamlet?", LONG])
    assert index.match(LONG.upper().replace("?", " ??")) == [Match(0, "exact", 1.0), Match(2, "exact", 1.0)]
    assert index.match("who wrote hamlet") == [Match(1, "exact", 1.0)]
    assert index.match("Who wrote Macbeth?") == []
    assert index.match("") == []


def test_a_prompt_within_a_longer_text_is_near_by_the_share_of_its_n_grams():
    index = PromptIndex([LONG])
    count = len(words(LONG))
    assert index.match(f"Here is a riddle. {LONG} Think first.") == [Match(0, "near", 1.0)]
    cut = " ".join(words(LONG)[: round(0.8 * count)])
    (match,) = index.match(cut)
    grams = count - 7
    assert match == Match(0, "near", (grams - (count - round(0.8 * count))) / grams)
    assert index.match(" ".join(words(LONG)[: count // 2])) == []
    assert PromptIndex([LONG], near=0.3).match(" ".join(words(LONG)[: count // 2]))


def test_few_changed_words_are_near_and_many_are_not():
    changed = words(LONG)
    changed[2] = "we"
    assert [match.kind for match in PromptIndex([LONG]).match(" ".join(changed))] == ["near"]
    changed[::6] = ["other"] * len(changed[::6])
    assert PromptIndex([LONG]).match(" ".join(changed)) == []


def test_short_prompts_need_nearly_all_their_words_and_the_shortest_all():
    index = PromptIndex(["Name three primary colors please now", "Say hello", "write a poem"])
    assert index.match("Could you name three primary colors please now, teacher?") == [Match(0, "near", 1.0)]
    assert index.match("name three primary schools, and say hello, and write a poem about it") == []
    assert index.match("write a poem!") == [Match(2, "exact", 1.0)]


def test_a_prompt_of_punctuation_matches_itself_only():
    index = PromptIndex(["???", ""])
    assert index.match(" ??? ") == [Match(0, "exact", 1.0)]
    assert index.match("!!!") == []
    assert index.match("") == []


def test_repeated_words_count_once():
    index = PromptIndex(["ha ha ha ha ha ha ha ha ha ha and then we all went home to sleep for a while"])
    assert index.match("ha " * 50) == []


def test_a_million_texts_pass_a_thousand_prompts_in_minutes():
    draw = random.Random(0)
    vocabulary = [f"w{i}" for i in range(5000)]
    heights = list(itertools.accumulate(1 / (i + 1) for i in range(5000)))
    text = lambda n: " ".join(draw.choices(vocabulary, cum_weights=heights, k=n))  # noqa: E731
    prompts = [text(draw.randint(4, 60)) for _ in range(1000)]
    texts = [text(100) for _ in range(2000)]
    texts[70] = f"Q: {prompts[500]} A: {text(80)}"
    index = PromptIndex(prompts)
    begun = time.process_time()
    matches = {place: index.match(given) for place, given in enumerate(texts)}
    # About 50 microseconds each; far more on a busy core.
    assert (time.process_time() - begun) / len(texts) < 4e-4
    assert [match.prompt for match in matches[70]] == [500]


def test_distinct_n_counts_over_all_texts():
    assert distinct_share([plain_words("a b a"), plain_words("a b")], 1) == 2 / 5
    assert distinct_share([plain_words("a b a"), plain_words("A b.")], 2) == 2 / 3
    assert distinct_share([[], ["a"]], 2) == 0.0


def test_a_text_repeats_itself_where_four_words_occur_three_times():
    once = "the red house is old"
    assert not repeats_itself(plain_words(once))
    assert not repeats_itself(plain_words(f"{once}, and {once}"))
    assert repeats_itself(plain_words(f"{once}, and {once}. But THE RED HOUSE IS big"))
    # They may overlap: six times the same word.
    assert not repeats_itself(plain_words("no " * 5))
    assert repeats_itself(plain_words("no " * 6))
    assert not repeats_itself([])
