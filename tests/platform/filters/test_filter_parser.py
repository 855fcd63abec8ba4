"""The filter language: what is read, and where a mistake is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerboard.platform.filters.errors import BadFilter
from steerboard.platform.filters.expression import Comparison, Conjunction, Disjunction, Expression, Negation, Search
from steerboard.platform.filters.parser import parse

SIGNS = st.sampled_from([*'()"\\<>=!~:,-. ab1', "and", "or", "not", " and ", "lr", "tag:", "\x00", "\u00e9"])


@given(st.lists(SIGNS, max_size=40).map("".join) | st.text(max_size=200))
def test_every_text_is_read_or_its_mistake_has_a_place_in_it(text: str) -> None:
    error = mistake_of(text)
    if error is not None:
        assert error.code == "bad_filter"
        assert 0 <= error.extra["position"] <= len(text)
        assert error.extra["length"] >= 1
        assert error.errors[0].location == f"filter, character {error.extra['position'] + 1}"


def mistake_of(text: str) -> BadFilter | None:
    try:
        parse(text)
    except BadFilter as error:
        return error
    return None


WORDS = st.text("abcxyz019_./-\u00e9", min_size=1, max_size=8).filter(
    lambda word: not word.startswith("-") and word.lower() not in ("and", "or", "not")
)
TEXTS = st.text(max_size=8).filter(lambda text: "\x00" not in text)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def written(expression: Expression) -> str:
    """The text as a person could have written it, with every value in quotes."""
    match expression:
        case Conjunction(parts):
            return "(" + " and ".join(map(written, parts)) + ")"
        case Disjunction(parts):
            return "(" + " or ".join(map(written, parts)) + ")"
        case Negation(of):
            return f"not {written(of)}"
        case Search(word):
            return quoted(word.text)
        case Comparison(field, sign, values):
            return f"{quoted(field.text)}{sign}{','.join(quoted(value.text) for value in values)}"


def meaning(expression: Expression | None) -> object:
    """The meaning without places and quotes."""
    match expression:
        case Conjunction(parts) | Disjunction(parts):
            return (type(expression).__name__, [meaning(part) for part in parts])
        case Negation(of):
            return ("not", meaning(of))
        case Search(word):
            return ("search", word.text)
        case Comparison(field, sign, values):
            return (field.text, sign, [value.text for value in values])
    return None


LEAVES = st.one_of(
    st.builds(lambda word: word, WORDS),
    TEXTS.map(quoted),
    st.builds(
        lambda field, sign, value: f"{field} {sign} {value}", WORDS, st.sampled_from(["=", "!=", "<", ">="]), WORDS
    ),
    st.builds(lambda field, values: f"{field}:{','.join(values)}", WORDS, st.lists(WORDS, min_size=1, max_size=3)),
)
FILTERS = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        st.lists(parts, min_size=2, max_size=3).map(lambda several: f"({' '.join(several)})"),
        st.lists(parts, min_size=2, max_size=3).map(lambda several: f"({' or '.join(several)})"),
        parts.map(lambda one: f"-{one}"),
        parts.map(lambda one: f"NOT {one}"),
    ),
    max_leaves=8,
)


@given(FILTERS)
def test_a_filter_that_is_written_out_means_the_same(text: str) -> None:
    read = parse(text)
    assert read is not None
    assert meaning(parse(written(read))) == meaning(read)


def test_blanks_join_more_tightly_than_or() -> None:
    assert meaning(parse("a or b c")) == (
        "Disjunction",
        [("search", "a"), ("Conjunction", [("search", "b"), ("search", "c")])],
    )
    assert parse("  ") is None


@pytest.mark.parametrize(
    ("text", "position", "told"),
    [
        ("eval_loss <", 11, "compared with nothing"),
        ("(a or b", 0, "not closed"),
        ("a)", 1, "closes nothing"),
        ('name = "x', 7, "quote is not closed"),
        ("= 3", 0, "no field before it"),
        ("a and", 5, "missing at the end"),
        ("and a", 0, "needs something before it"),
        ("lr < 1,2", 6, "several values"),
        ("-" * 40 + "a", 30, "nested"),
    ],
)
def test_a_mistake_is_named_at_its_place(text: str, position: int, told: str) -> None:
    with pytest.raises(BadFilter, match=told) as caught:
        parse(text)
    assert caught.value.extra["position"] == position
