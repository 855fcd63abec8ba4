"""What a word of a sample is, in SQL (the index) and in Python (quoted phrases).

Words are runs of letters and digits, lower-cased by the database's `simple` text search configuration. Its parser would
take `and/or`, `end.Start` or `<tag>` for one token, or for none; so the characters that glue words become blanks.
"""

from __future__ import annotations

import re
from typing import Any

from steerboard_contracts.samples import ANSWERS
from steerboard_contracts.tools import answer_text

_GLUE = "./@-_<>&~+"
_WORD = re.compile(r"[^\W_]+")
_PHRASE = re.compile(r'"([^"]*)"')

# A longer text could have too many words for one tsvector. Pieces overlap by more than the longest word it takes.
_PIECE, _STEP = 200_000, 197_000


def _unglued(text: str) -> str:
    for character in _GLUE:
        text = f"replace({text}, '{character}', ' ')"
    return text


def words_sql(text: str) -> str:
    """SQL of the words (text[]) in a text expression of at most one piece."""
    return f"tsvector_to_array(to_tsvector('simple', {_unglued(text)}))"


def _answer_sql(name: str) -> str:
    """SQL of an answer as text, as `tools.answer_text` has it: a text, or the text of a turn and its calls."""
    answer = f"s.sample -> '{name}'"
    call = "call -> 'function' ->> 'name', call -> 'function' ->> 'arguments'"
    return f"""CASE jsonb_typeof({answer}) WHEN 'object' THEN concat_ws(' ', {answer} ->> 'content',
                   (SELECT string_agg(concat_ws(' ', {call}), ' ')
                    FROM jsonb_array_elements({answer} -> 'tool_calls') call))
               ELSE s.sample ->> '{name}' END"""


# The text of a sample `s`: its turns and its answers; then its pieces, nearly always one.
SAMPLE_PIECES = f"""
    CROSS JOIN LATERAL (
        SELECT concat_ws(' ', (SELECT string_agg(turn ->> 'content', ' ')
                               FROM jsonb_array_elements(s.sample -> 'prompt') turn),
                         {", ".join(map(_answer_sql, ANSWERS))},
                         (SELECT string_agg(step, ' ')
                          FROM jsonb_array_elements_text(s.sample -> 'completions') step)) AS whole
    ) texts
    CROSS JOIN LATERAL generate_series(0, length(texts.whole) / {_STEP}) piece
"""
PIECE = f"substr(texts.whole, piece * {_STEP} + 1, {_PIECE})"


def texts_of(sample: dict[str, Any]) -> list[tuple[str, int | None, str]]:
    """What is searched of a sample: (field, turn of the prompt, text)."""
    turns = [("prompt", at, turn["content"]) for at, turn in enumerate(sample["prompt"])]
    answers = [(field, None, answer_text(sample[field])) for field in ANSWERS if field in sample]
    steps = [("completions", None, "\n".join(sample["completions"]))] if "completions" in sample else []
    return [*turns, *answers, *steps]


def words_of(query: str) -> list[str]:
    return _WORD.findall(query.lower())


def phrases_of(query: str) -> list[str]:
    """The quoted parts of a query that have more than one word, as `plain` writes them."""
    return [plain(part) for part in _PHRASE.findall(query) if len(_WORD.findall(part)) > 1]


def plain(text: str) -> str:
    """Lower-case words with a blank on both sides of each."""
    return f" {' '.join(_WORD.findall(text.lower()))} "


def holds(sample: dict[str, Any], phrases: list[str]) -> bool:
    """Whether every phrase occurs in one text of the sample."""
    shown = [plain(text) for _, _, text in texts_of(sample)]
    return all(any(phrase in text for text in shown) for phrase in phrases)
