"""The words of judgment files: what each verdict and each reviewer's name is read as, and how a user adds to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from steerboard_contracts.errors import BadInput
from steerboard_figures.formats.fastchat import WINNERS
from steerboard_figures.formats.records import JUDGES
from steerboard_figures.formats.vicuna import reviewer_name
from steerboard_statistics.benchmarks import arena_hard

Meaning = Literal["a", "b", "tie"]
"""The first answer is better, the second, or neither."""

READINGS = ("a", "b", "tie", "none")
_MOST_WORDS = 50
_LONGEST_WORD = 100
# What tables and scripts write where a judge gave no verdict.
_SILENT = ("", "error", "none", "null", "nan", "-1")
_SIDES: dict[str, Meaning] = {"a": "a", "b": "b", "model a": "a", "model b": "b", "model 1": "a", "model 2": "b"}
_TIES: dict[str, Meaning] = {"tie": "tie", "both bad": "tie", "bothbad": "tie", "both good": "tie", "draw": "tie"}
_VALUES: dict[float, Meaning] = {1.0: "a", 0.5: "tie", 0.0: "b"}
_CHOICES: dict[str, Meaning] = {"1": "a", "2": "b"}
_REVIEWERS = (*JUDGES, "reviewer_id", "evaluator")

# By format, the verdicts that it knows. Arena-Hard's have a grammar of their own.
WORDS: dict[str, dict[str, Meaning]] = {
    "battles": {**_SIDES, **_TIES, "left": "a", "right": "b", "c": "tie"},
    "pandalm": {**_CHOICES, "0": "tie", "tie": "tie"},
    "fastchat_pair": {word.replace("_", " "): _VALUES[value] for word, value in WINNERS.items()},
    "llmbar": _CHOICES,
}
# By format, how its own files spell a verdict that is read as one of `READINGS`.
_SPELLINGS: dict[str, dict[str, Any]] = {
    "battles": {"a": "model_a", "b": "model_b", "tie": "tie", "none": None},
    "pandalm": {"a": 1, "b": 2, "tie": 0, "none": None},
    "fastchat_pair": {"a": "model_1", "b": "model_2", "tie": "tie", "none": "error"},
    "llmbar": {"a": 1, "b": 2, "none": None},
    "arena_hard": {"a": "A>B", "b": "B>A", "tie": "A=B", "none": None},
}


def plain(word: object) -> str:
    """A word without case, brackets, and the difference between blanks and underscores; 1.0 is 1."""
    text = str(word).strip().strip("[]").strip().lower().replace("_", " ")
    return text.removesuffix(".0") if text.removesuffix(".0").isdecimal() else text


def meaning(format: str, word: object) -> Meaning | None:
    """What a verdict of a file is read as, None for one that the format does not know."""
    if format == "arena_hard":
        verdict = arena_hard.verdict(word if isinstance(word, str) else None)
        return None if verdict is None else _VALUES[verdict[0]]
    written = plain(word)
    # MT-Bench's judgments qualify their ties: `tie (inconsistent)`, `tie (bothbad)`.
    return WORDS[format].get("tie" if written.startswith("tie (") else written)


@dataclass
class Dialect:
    """The words of the files of one format. `verdicts` {word: one of `READINGS`} and `reviewers` {name: name} are a
    user's, by `plain` words and by names as they are written; `words` and `named` count what the rows have.

    Raises `BadInput` for verdicts of a format that has none, and for readings that it cannot have.
    """

    format: str = ""
    verdicts: Mapping[str, str] = field(default_factory=dict)
    reviewers: Mapping[str, str] = field(default_factory=dict)
    words: Counter[str] = field(default_factory=Counter)
    named: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.verdicts = {plain(word): reading.strip().lower() for word, reading in self.verdicts.items()}
        readings = _SPELLINGS.get(self.format, {})
        for word, reading in self.verdicts.items():
            if not readings:
                raise BadInput(
                    f"files of {self.format} have no verdicts in words",
                    code="invalid_request",
                    hint="Leave --verdicts out.",
                )
            if reading not in readings:
                raise BadInput(
                    f"--verdicts {word}={reading}: {self.format} reads no verdict as {reading!r}",
                    code="invalid_request",
                    hint=f"It is one of {', '.join(readings)}.",
                )

    def read(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """The row with its verdicts and reviewers as the format spells them. Every word that it has is counted."""
        respelt = dict(row)
        for name in _REVIEWERS if self.reviewers or self.format == "vicuna_review" else ():
            self._rename(respelt, name)
        for holder, name in self._verdicts(respelt):
            word = holder[name]
            if word is None:
                continue
            self.words[str(word).strip()[:_LONGEST_WORD]] += 1
            reading = self.verdicts.get(plain(word))
            if reading is not None:
                holder[name] = _SPELLINGS[self.format][reading]
        return respelt

    def document(self) -> dict[str, Any]:
        """`verdicts`: of each word how often it occurs and what it is read as, null for none; `reviewers`: the names
        that are read as another's."""
        verdicts = {word: {"read_as": self._reading(word), "n": n} for word, n in self.words.most_common(_MOST_WORDS)}
        words: dict[str, Any] = {"verdicts": verdicts} if self.format in _SPELLINGS else {}
        return words | ({"reviewers": dict(sorted(self.named.items()))} if self.named else {})

    def unknown(self) -> dict[str, int]:
        """Words without a meaning, given neither by the format nor by the user, and how often they occur."""
        return {
            word: n
            for word, n in self.words.most_common()
            if plain(word) not in self.verdicts and meaning(self.format, word) is None and plain(word) not in _SILENT
        }

    def _reading(self, word: str) -> str | None:
        given = self.verdicts.get(plain(word))
        return meaning(self.format, word) if given is None else None if given == "none" else given

    def _rename(self, row: dict[str, Any], name: str) -> None:
        value = row.get(name)
        first = value[0] if isinstance(value, list) and value else value
        if not isinstance(first, str):
            return
        written = first.strip()
        reviewer = self.reviewers.get(written, written)
        shown = reviewer_name(reviewer) if name == "reviewer_id" and reviewer == written else reviewer
        if shown != written and len(self.named) < _MOST_WORDS:
            self.named[written] = shown
        if reviewer != written:
            row[name] = [reviewer, *value[1:]] if isinstance(value, list) else reviewer

    def _verdicts(self, row: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
        """(what holds a verdict, under which name); nested ones are copied into the row first."""
        match self.format:
            case "battles":
                yield from ((row, name) for name in ("winner",) if name in row)
            case "fastchat_pair":
                yield from ((row, name) for name in ("g1_winner", "g2_winner") if name in row)
            case "pandalm":
                yield from ((row, name) for name in list(row) if name.endswith("_result"))
            case "llmbar":
                yield from ((row, name) for name in ("winner_order12", "winner_order21") if name in row)
                results = row.get("results")
                if isinstance(results, list) and results and isinstance(results[0], dict):
                    orders = {
                        key: dict(order) if isinstance(order, dict) else order for key, order in results[0].items()
                    }
                    row["results"] = [orders, *results[1:]]
                    yield from (
                        (order, "winner") for order in orders.values() if isinstance(order, dict) and "winner" in order
                    )
            case "arena_hard":
                games = row.get("games")
                if isinstance(games, list):
                    row["games"] = [dict(game) if isinstance(game, dict) else game for game in games]
                    yield from ((game, "score") for game in row["games"] if isinstance(game, dict) and "score" in game)
