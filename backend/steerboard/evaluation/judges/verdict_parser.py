"""Parse a judge's text by the rules of each benchmark. Pure: text in, numbers out, None if there is no verdict.

Ratings: FastChat, `llm_judge/common.py`. Pairs: the labels of MT-Bench and of Arena-Hard; a text with two different
verdicts has none, as in Arena-Hard. AlpacaEval: the weights of the tokens `m` and `M`, else the word itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LOWEST, HIGHEST = 1.0, 10.0

# Possessive, so that no text of an endpoint makes them slow.
_DOUBLE = re.compile(r"\[\[(\d++\.?+\d*+)\]\]", re.ASCII)
_SINGLE = re.compile(r"\[(\d++\.?+\d*+)\]", re.ASCII)
_PAIR = re.compile(r"\[\[([ABC])\]\]")
_ARENA = re.compile(r"\[\[([AB<>=]{3,4})\]\]")
_ARENA_LOOSE = re.compile(r"\[([AB<>=]{3,4})\]")
_ARENA_VALUES = {
    "A>>B": (1.0, 3),
    "A>B": (1.0, 1),
    "A=B": (0.5, 1),
    "B>A": (0.0, 1),
    "B>>A": (0.0, 3),
    # The same, written the other way round.
    "B<<A": (1.0, 3),
    "B<A": (1.0, 1),
    "B=A": (0.5, 1),
    "A<B": (0.0, 1),
    "A<<B": (0.0, 3),
}
_WORD = re.compile(r"(?<![A-Za-z0-9_'\u2019])[mM](?![A-Za-z0-9_'\u2019])")
_PAIR_VALUES = {"A": 1.0, "B": 0.0, "C": 0.5}
_REFUSALS = re.compile(
    r"\s*(?:i['\u2019]?m sorry\b|i am sorry\b|sorry, (?:but )?i\b|i apologi[sz]e\b|as an ai\b"
    r"|i (?:can['\u2019]?t|cannot|won['\u2019]?t|am unable to|am not able to|must decline)\b"
    r"|i['\u2019]m (?:unable|not able) to\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Preference:
    """Of two answers: 1 the first shown is better, 0 the second, 0.5 a tie. `weight` 3 for a clear verdict."""

    value: float
    weight: int = 1


def rating(text: str) -> float | None:
    """The first `[[n]]`, or else the first `[n]`; decimals are allowed. None outside of 1 to 10."""
    found = _DOUBLE.search(text) or _SINGLE.search(text)
    return _in_range(found.group(1)) if found else None


def named_scores(text: str, names: Sequence[str]) -> list[float | None]:
    """The score of each name in lines such as `Assistant DT: 8.5`; None where there is none, or it is outside 1 to 10.

    The scores come at the end, so the last line of a name counts, and one with nothing but the score before one that
    continues after it. Emphasis, list signs, `Score`, and `/10` are ignored.
    """
    return [_named(text, name) for name in names]


def pair(text: str) -> Preference | None:
    """`[[A]]`, `[[B]]` or, for a tie, `[[C]]`."""
    labels = set(_PAIR.findall(text))
    return Preference(_PAIR_VALUES[labels.pop()]) if len(labels) == 1 else None


def arena(text: str) -> Preference | None:
    """`[[A>>B]]`, `[[A>B]]`, `[[A=B]]`, `[[B>A]]`, `[[B>>A]]`; in single brackets where there are no double ones."""
    labels = _ARENA.findall(text) or _ARENA_LOOSE.findall(text)
    verdicts = {_ARENA_VALUES.get(label) for label in labels}
    verdict = verdicts.pop() if len(verdicts) == 1 else None
    return Preference(*verdict) if verdict else None


def weighted_choice(top_logprobs: Mapping[str, float]) -> float | None:
    """Probability of `M` against `m`, from the log-probabilities of the first token of the answer.

    What is not among the most probable tokens counts as impossible; None when neither is there.
    """
    m, M = (math.exp(min(0.0, top_logprobs.get(token, -math.inf))) for token in ("m", "M"))
    return M / (m + M) if m + M > 0 else None


def worded_choice(text: str) -> float | None:
    """1 for `M`, 0 for `m`; None when the text has neither as a word of its own, or both."""
    words = set(_WORD.findall(text))
    return float(words.pop() == "M") if len(words) == 1 else None


def top_logprobs(logprobs: Any) -> dict[str, float]:
    """{token: log-probability} of the first token, from `choices[0].logprobs` as an endpoint sent it; {} if it cannot
    be read."""
    try:
        entries = logprobs["content"][0]["top_logprobs"]
        pairs = [(entry["token"], entry["logprob"]) for entry in entries]
    except (LookupError, TypeError):
        return {}
    return {
        token: float(value)
        for token, value in pairs
        if isinstance(token, str) and isinstance(value, int | float) and not math.isnan(value)
    }


def is_refusal(text: str, finish_reason: str | None) -> bool:
    """Whether a text without a verdict declines to give one."""
    return finish_reason in ("content_filter", "refusal") or _REFUSALS.match(text) is not None


def _named(text: str, name: str) -> float | None:
    # `Assistant` may be left out.
    bare = re.escape(re.sub(r"^assistant\s+", "", name, flags=re.IGNORECASE))
    start = (
        r"^(?:[^\w\n]|_)*+(?:\d++[.)](?:[^\w\n]|_)*+)?+(?:the )?+(?:answer of )?+(?:assistant[^\S\n]++)?+"
        rf"{bare}(?![^\W_])"
    )
    between = r"[*_`}\"'’()\t ]*+[:=][*_`\"'\t ]*+(?:score[*_`\"'\t ]*+[:=]?+)?+[*_`\"'\t \[{(]*+"
    number = r"(\d++(?:\.\d++)?+)[*_`\"'\]})]*+(?:[\t ]*+/[\t ]*+10)?+(?![\w/]|\.\d|[\t ]*[-\u2013][\t ]*\d)"
    flags = re.IGNORECASE | re.MULTILINE
    found = re.findall(rf"{start}{between}{number}(?:[^\w\n]|_)*+$", text, flags) or re.findall(
        rf"{start}{between}{number}", text, flags
    )
    return _in_range(found[-1]) if found else None


def _in_range(number: str) -> float | None:
    value = float(number)
    return value if LOWEST <= value <= HIGHEST else None
