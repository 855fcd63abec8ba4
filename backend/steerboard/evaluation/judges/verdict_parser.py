"""Parse a judge's text by the labels of each benchmark. Pure: text in, numbers out, None if there is no verdict.

Ratings and pairs of MT-Bench, and Arena-Hard's pairs, share one rule: what a judge thought before its answer and what
it quotes do not count, and a text with two different verdicts has none. So an answer that asks for a 10 gets none by
being quoted, and FastChat's first match is not the rule here. AlpacaEval: the weights of the tokens `m` and `M`, else
the word itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

LOWEST, HIGHEST = 1.0, 10.0

T = TypeVar("T")

# Possessive, so that no text of an endpoint makes them slow.
_MET = re.compile(
    r"(?m)^[ \t*_`#>.-]*+(?:criterion[ \t]++)?+(\d{1,3})[*_`]*+[ \t]*+[:.)][*_`\t ]*+(yes|no)\b", re.I | re.A
)
_DOUBLE = re.compile(r"\[\[(\d++\.?+\d*+)\]\]", re.ASCII)
# In single brackets a number may be a citation, so the line has to name it.
_SINGLE = re.compile(
    r"\b(?:rating|score|verdict)\b[^\w\n\[]*+(?:is\b|of\b)?+[^\w\n\[]*+\[(\d++\.?+\d*+)\]", re.A | re.I
)
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
_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
# Within a line: an apostrophe opens nothing, and an opened quotation that is not closed is none.
_QUOTED = re.compile(
    r"""(?m)^[ \t]*+>.*+$|"[^"\n]*+"|\u201c[^\u201d\n]*+\u201d|\u00ab[^\u00bb\n]*+\u00bb"""
    r"""|(?<!\w)'(?=\S)[^'\n]*+(?:'(?=\w)[^'\n]*+)*+'(?!\w)|\u2018(?:[^\u2019\n]|\u2019(?=\w))*+\u2019"""
)
# One published judgment in seventy ends so; the quotation is the judge's own verdict.
_OWN_QUOTED = re.compile(r"(\bas follows:\s*+)[\"\u201c]([^\"\u201c\u201d\n]*+)[\"\u201d](?=\W*+\Z)")
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
    """The preference between two answers: 1 the first shown is better, 0 the second, 0.5 a tie. `weight` 3 for a clear
    verdict."""

    value: float
    weight: int = 1


def rating(text: str) -> float | None:
    """`[[n]]`, or else `[n]` behind the word rating, score or verdict; decimals are allowed. None outside 1 to 10."""
    number = _only({float(label) for label in _labels(text, _DOUBLE, _SINGLE)})
    return number if number is not None and LOWEST <= number <= HIGHEST else None


def criteria_met(text: str, weights: Sequence[float]) -> float | None:
    """1 and 9 times the share of the weights of criteria that are met, from lines such as `2: yes`, outside thoughts.
    The last line of a number counts, since the verdicts come at the end. None where one criterion has none."""
    answers = {int(number): word.lower() == "yes" for number, word in _MET.findall(_THOUGHT.sub("", text))}
    if any(number not in answers for number in range(1, len(weights) + 1)):
        return None
    met = sum(weight for number, weight in enumerate(weights, start=1) if answers[number])
    return LOWEST + (HIGHEST - LOWEST) * met / sum(weights)


def named_scores(text: str, names: Sequence[str]) -> list[float | None]:
    """The score of each name in lines such as `Assistant DT: 8.5`; None where there is none, or it is outside 1 to 10.

    The scores come at the end, so the last line of a name counts, and one with nothing but the score before one that
    continues after it. Emphasis, list signs, `Score`, and `/10` are ignored.
    """
    return [_named(text, name) for name in names]


def pair(text: str) -> Preference | None:
    """`[[A]]`, `[[B]]` or, for a tie, `[[C]]`."""
    value = _only({_PAIR_VALUES[label] for label in _labels(text, _PAIR)})
    return None if value is None else Preference(value)


def arena(text: str) -> Preference | None:
    """`[[A>>B]]`, `[[A>B]]`, `[[A=B]]`, `[[B>A]]`, `[[B>>A]]`; in single brackets where there are no double ones."""
    verdict = _only({_ARENA_VALUES.get(label) for label in _labels(text, _ARENA, _ARENA_LOOSE)})
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


def _labels(text: str, *patterns: re.Pattern[str]) -> list[str]:
    """The labels by the first pattern that has any, outside thoughts and quotations."""
    words = _QUOTED.sub(" ", _OWN_QUOTED.sub(r"\1\2", _THOUGHT.sub("", text)))
    return next((matches for matches in (pattern.findall(words) for pattern in patterns) if matches), [])


def _only(verdicts: set[T]) -> T | None:
    return verdicts.pop() if len(verdicts) == 1 else None


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
    numbers = re.findall(rf"{start}{between}{number}(?:[^\w\n]|_)*+$", text, flags) or re.findall(
        rf"{start}{between}{number}", text, flags
    )
    return _in_range(numbers[-1]) if numbers else None


def _in_range(number: str) -> float | None:
    value = float(number)
    return value if LOWEST <= value <= HIGHEST else None
