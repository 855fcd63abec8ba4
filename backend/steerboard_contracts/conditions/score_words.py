"""How a score is written: as digits, words or tokens, and where; what a user may write, and which word is for which
score."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

ScoreStyle = Literal["digits", "words", "tokens"]
ScorePlace = Literal["answer", "request", "both"]

SCORE_WORDS = ("terrible", "bad", "mediocre", "ordinary", "good", "great", "wonderful")
SCORE_PHRASE = "The answer is {}."
LONGEST_WORD, LONGEST_PHRASE = 40, 200
# What control tokens, templates and placeholders are made of.
_RESERVED = set("<>[]{}|")
# Steps of a range that can be told apart by a double.
_MOST_STEPS = 1e6
_TOKEN = re.compile(r"<\|rm_score_\d+\|>")


def _words(words: tuple[str, ...]) -> tuple[str, ...]:
    seen: dict[str, str] = {}
    for word in words:
        if not word or word != word.strip():
            raise ValueError(f"{word!r} is empty, or begins or ends with a space")
        if len(word) > LONGEST_WORD:
            raise ValueError(f"{word[:LONGEST_WORD]!r}... has more than {LONGEST_WORD} characters")
        _check_characters(word, _RESERVED)
        same = seen.setdefault(unicodedata.normalize("NFKC", word).casefold(), word)
        if same is not word:
            raise ValueError(f"{same!r} and {word!r} are one word")
    return words


def _phrase(phrase: str) -> str:
    if phrase.count("{}") != 1:
        raise ValueError(f"{phrase!r} must have one {{}}, where the word is written")
    if phrase != phrase.strip():
        raise ValueError(f"{phrase!r} begins or ends with a space")
    _check_characters(phrase.replace("{}", ""), _RESERVED)
    return phrase


def _check_characters(text: str, reserved: set[str]) -> None:
    for character in text:
        kind = unicodedata.category(character)
        if character in reserved or kind[0] == "C" or (kind[0] == "Z" and character != " "):
            raise ValueError(
                f"{text!r} has the character {character!r}; line ends, control characters and "
                f"{' '.join(sorted(reserved))} cannot be part of it"
            )


ScoreWords = Annotated[tuple[str, ...], Field(min_length=2, max_length=21), AfterValidator(_words)]
ScorePhrase = Annotated[str, Field(max_length=LONGEST_PHRASE), AfterValidator(_phrase)]


def score_token(part: int) -> str:
    """The token that is written for a part of the range, counted from the lowest scores: `<|rm_score_0|>`."""
    return f"<|rm_score_{part}|>"


def is_score_token(text: str) -> bool:
    return _TOKEN.fullmatch(text) is not None


class Writing(BaseModel):
    """How conditions are written into a prompt. By default as in arXiv 2308.12050, Eq. 6.

    `place`: whether the condition opens the answer, ends the request (the last user turn), or both. `words`: from the
    lowest score to the highest; of style tokens, what each token means before it is trained. `phrase`: what the request
    has, with `{}` for the word or the token.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    style: ScoreStyle = "digits"
    place: ScorePlace = "answer"
    words: ScoreWords = SCORE_WORDS
    phrase: ScorePhrase = SCORE_PHRASE

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens from the lowest score to the highest; none where the style has none."""
        return tuple(map(score_token, range(len(self.words)))) if self.style == "tokens" else ()

    @property
    def signs(self) -> tuple[str, ...]:
        """What is written for each part of the range: the words, or the tokens in their place."""
        return self.tokens or self.words

    @property
    def sentence(self) -> str:
        """The phrase as it is written: a token has a word's leading space in itself, as most words' tokens do."""
        return self.phrase.replace(" {}", "{}") if self.tokens else self.phrase

    @property
    def in_words(self) -> Writing:
        """The same with each token's word in its place."""
        return self.model_copy(update={"style": "words"}) if self.tokens else self


def word_borders(low: float, high: float, step: float, words: Sequence[str]) -> tuple[float, ...]:
    """The `len(words) - 1` scores from which on the next word is written, for scores that were clamped to `low` to
    `high` and rounded to `step`.

    The range has as many parts of equal width as there are words. A border comes half a step before the first score of
    its part, so that rounding decides nothing. Raises `ValueError` where a word would stand for no score.
    """
    if not (high - low) / step <= _MOST_STEPS:
        raise ValueError(f"scores from {low:g} to {high:g} in steps of {step:g} are too many for words")
    width = (high - low) / len(words)
    first = [math.ceil((low + width * place) / step - 1e-9) for place in range(1, len(words))]
    steps = [round(low / step), *first, round(high / step)]
    if any(after <= before for before, after in zip(steps[:-2], first, strict=True)) or steps[-1] < first[-1]:
        raise ValueError(
            f"{len(words)} words are more than the scores from {low:g} to {high:g} in steps of {step:g}; write fewer "
            "words, or take smaller steps"
        )
    return tuple(round((place - 0.5) * step, 9) for place in first)
