"""Conversations of every form become the same turns, and pairs of them one prompt with two answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from steerboard.datasets.parsing.dialogues import is_transcript, split_sides, transcript_turns
from steerboard.datasets.parsing.messages import message_turns

said = st.text(st.characters(categories=["L", "N", "P", "Zs"]), min_size=1, max_size=20).map(
    lambda text: text.strip() or "x"
)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def transcript(turns: list[dict[str, str]]) -> str:
    return "".join(f"\n\n{'Human' if t['role'] == 'user' else 'Assistant'}: {t['content']}" for t in turns)


@given(st.lists(st.tuples(said, said), min_size=1, max_size=4))
def test_a_transcript_is_split_into_the_turns_it_was_made_of(rounds: list[tuple[str, str]]) -> None:
    turns = [turn for question, answer in rounds for turn in (user(question), assistant(answer))]
    assert is_transcript(transcript(turns))
    assert transcript_turns(transcript(turns)) == turns


def test_a_marker_inside_a_line_is_no_turn() -> None:
    turns = [user("Who said Human: first?"), assistant("Nobody.\nAssistant: is a word here.")]
    assert transcript_turns(transcript(turns)) == turns


def test_sharegpt_names_become_roles() -> None:
    turns = message_turns([{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}])
    assert turns == [user("Hi"), assistant("Hello")]


@given(st.lists(st.tuples(said, said), max_size=3), said, said, said)
def test_the_shared_turns_are_the_prompt_and_the_last_turns_the_sides(
    rounds: list[tuple[str, str]], question: str, good: str, bad: str
) -> None:
    prompt = [*(turn for q, a in rounds for turn in (user(q), assistant(a))), user(question)]
    assert split_sides([*prompt, assistant(good)], [*prompt, assistant(bad)]) == (prompt, good, bad)


def test_dialogues_that_part_before_their_last_turn_have_no_common_prompt() -> None:
    start = [user("Hi")]
    longer = [*start, assistant("a"), user("more"), assistant("b")]
    assert split_sides(longer, [*start, assistant("c"), user("more"), assistant("b")]) is None
    assert split_sides(longer, [*start, assistant("a")]) is None
    assert split_sides(longer, [*start, assistant("c")]) is None
    assert split_sides([*start, assistant("c")], longer) is None
    assert split_sides([*start, assistant("a")], [user("Ho"), assistant("a")]) is None
    assert split_sides([*start, user("really?")], [*start, assistant("a")]) is None
