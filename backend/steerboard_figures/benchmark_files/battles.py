"""Figures of arena battles: a verdict on two models' answers in each row, several rows of one battle where there were
more, and the style of the answers where it is known."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from steerboard_contracts.errors import BadInput
from steerboard_figures.benchmark_files.judges import JudgedItem, by_judge, labels
from steerboard_figures.benchmark_files.reading import Fields, Figures, Findings, parsed
from steerboard_figures.benchmark_files.repeats import UNORDERED, settled, votes
from steerboard_figures.benchmark_files.words import meaning
from steerboard_figures.formats.fastchat import template_of
from steerboard_figures.formats.records import (
    JUDGES,
    Unreadable,
    identifier,
    moment,
    named,
    named_judge,
    number,
    turn_of,
)
from steerboard_statistics.benchmarks import arena
from steerboard_statistics.benchmarks.battles import PairedComparison, by_battle
from steerboard_statistics.validity import assess

_FIGURES = ("models", "style_controlled", "matrix", "separability")
_RATING = ("rating", "low", "high", "elo", "wins", "ties", "losses")
_VALUES = {"a": 1.0, "tie": 0.5, "b": 0.0}
_MOST_JUDGES = 100
_OBJECTS = re.compile(r"\s*(?:\[\s*)?\{\s*['\"]")
# As lmarena names the features, in the metadata of a battle.
_STYLE = {"length": "sum_assistant_{}_tokens", "headers": "header_count_{}", "lists": "list_count_{}"}
_BOLD = {"bold": "bold_count_{}"}
_MARKDOWN = {
    "headers": re.compile(r"^#{1,6}\s", re.MULTILINE),
    "lists": re.compile(r"^\s*(?:\d+\.|[-*+])\s", re.MULTILINE),
    "bold": re.compile(r"\*\*[^*\n]+\*\*|__[^_\n]+__"),
}


def is_battle(row: Fields) -> bool:
    return "winner" in row and ({"model_a", "model_b"} <= row.keys() or {"left", "right"} <= row.keys())


def figures(paths: Sequence[Path], judge: str | None, findings: Findings, *, crowd: bool = False) -> Figures:
    """Bradley-Terry and Elo ratings with intervals, win matrix, separability; and of battles whose answers or style are
    known the ratings with style controlled for. Of each judge or voter its own, or of all together as a `crowd`.

    Rows of one judge with one id of a vote, or on one question, are one where one of them is newer. Rows with one
    `battle` are of one vote, and `n` counts votes. Raises `BadInput` for too many voters.
    """
    rows = [
        _of_file(row, place) for place, path in enumerate(paths) for row in parsed([path], _pair, findings, "winner")
    ]
    names = labels([JudgedItem(row.judge, row.template, row.key(place)) for place, row in enumerate(rows)])
    if crowd:
        voters = Counter(name for name in names if name is not None)
        return {"judges": dict(voters.most_common(_MOST_JUDGES)), **_figures(rows, findings)}
    judges = len(set(names))
    if judges > _MOST_JUDGES and judge is None:
        raise BadInput(
            f"{judges:,} judges have battles here, too many for a leaderboard of each",
            code="several_judges",
            hint="Give --crowd to count all votes together, as an arena does, or --judge for those of one.",
        )
    return by_judge(rows, names, judge, findings, lambda judged: _figures(judged, findings))


def _of_file(row: Row, place: int) -> Row:
    """Two files may both number their battles from 0."""
    battle = row.pair.battle
    return row if battle is None else replace(row, pair=replace(row.pair, battle=f"{place}:{battle}"))


def of_rows(rows: Iterable[Fields]) -> Figures:
    """The same of battles that are at hand, in the form of a file's rows. Raises `Unreadable`."""
    battles = [_pair(row) for row in rows]
    return _figures(battles, Findings(rows=len(battles)))


@dataclass(frozen=True, slots=True)
class Row:
    """`id`: of the vote; `question`: that others may have voted on, too; `template`: of the judge's prompt."""

    id: str | None
    question: str | None
    judge: str | None
    template: str | None
    turn: int
    at: float | None
    pair: PairedComparison

    def key(self, place: int) -> Hashable:
        """Equal of rows about the same: with one id of the vote, else on one question with the models in one order; of
        a row that has neither its place alone."""
        if self.vote is not None:
            return "vote", self.vote, self.turn, frozenset((self.pair.a, self.pair.b))
        return place if self.question is None else (self.question, self.turn, self.pair.a, self.pair.b)

    @property
    def vote(self) -> str | None:
        """Its id, or that of the battle which it is a part of."""
        return self.id or self.pair.battle

    @property
    def value(self) -> float:
        """The share of the win of the first model in alphabetical order."""
        return self.pair.value if self.pair.a < self.pair.b else 1 - self.pair.value


def _figures(rows: Sequence[Row], findings: Findings) -> Figures:
    kept, superseded, unordered = _counted(rows, findings)
    pairs = [row.pair for row in kept]
    pairs_in_time = [row.pair for row in sorted(kept, key=_moment)]
    board: dict[str, Any] = {"n": len(by_battle(pairs)), "superseded": superseded}
    fought = Counter(name for pair in pairs for name in {pair.a, pair.b})
    of_all = _rated(pairs_in_time)
    # What is left of the battles of a model whose other ones cannot be read rates neither it nor its rivals.
    unusable = {name: {UNORDERED: unordered[name]} for name in fought}
    lost = {
        name
        for name, n in fought.items()
        if findings.lost(name, n - unordered[name], unusable[name], what="battles") is not None
    }
    usable = [pair for pair in pairs_in_time if not {pair.a, pair.b} & lost]
    board |= _rated(usable) if lost else of_all
    ratings = {rating["model"]: rating for rating in of_all["models"]}
    for name in sorted(lost):
        rated = {"model": name, **dict.fromkeys(_RATING), **ratings.get(name, {}), "n": fought[name]}
        usable_ = fought[name] - unordered[name]
        board["models"].append(findings.marked(rated, _RATING, usable_, unusable[name], what="battles"))
    board["models"] += findings.unread([{"model": name} for name in fought], _RATING)
    board |= {"matrix": _matrix(usable, findings), "style_controlled": _styled(usable, findings)}
    if not _in_time(kept, findings.threshold):
        for rated in (*board["models"], *(board["style_controlled"] or {}).get("models", [])):
            for figures_ in (rated, rated.get("partial") or {}):
                figures_ |= {"elo": None} if "elo" in figures_ else {}
    return findings.marked(board, _FIGURES, len(pairs), {}, what="battles")


def _moment(row: Row) -> tuple[object, ...]:
    """Sorts rows by time, and rows of one time by their content."""
    pair = row.pair
    return row.at or 0.0, pair.battle or "", *sorted((pair.a, pair.b)), row.value


def _in_time(rows: Sequence[Row], threshold: float) -> bool:
    """Whether time orders the votes, which Elo needs: each has one, and no more than `threshold` share theirs."""
    times = Counter(at for at, _ in {(row.at, row.pair.battle or place) for place, row in enumerate(rows)})
    return None not in times and sum(n for n in times.values() if n > 1) <= threshold * times.total()


def _counted(rows: Sequence[Row], findings: Findings) -> tuple[list[Row], int, Counter[str]]:
    """(rows that count, how many newer ones take the place of, by model the votes with several verdicts in no order).

    A vote with an id has one verdict. On a question there may be several by one judge, as a battle file of Arena-Hard
    has a strong verdict three times: only an older one is superseded.
    """
    places = list(enumerate(rows))
    by_id = [numbered for numbered in places if numbered[1].vote is not None]
    of_ids = settled(
        by_id, _about, lambda numbered: numbered[1].at, lambda numbered: numbered[1].value, findings.repeats
    )
    others = [numbered for numbered in places if numbered[1].vote is None]
    voted, older, repeated = votes(others, _about, lambda numbered: numbered[1].at, findings.repeats)
    superseded = of_ids.superseded + older
    findings.repeated(None, superseded, len(rows))
    if repeated > findings.threshold * len(rows):
        findings.warn(
            f"{repeated:,} of {len(rows):,} rows are on a question of another row and in no order of time: each "
            "counts as a vote, unless --repeats first or last is given"
        )
    models_of = dict(map(_named, by_id))
    unordered = Counter(name for key in of_ids.unordered for name in models_of[key])
    return [row for _, row in sorted([*of_ids.kept, *voted], key=lambda numbered: numbered[0])], superseded, unordered


def _about(numbered: tuple[int, Row]) -> Hashable:
    place, row = numbered
    return row.judge, row.key(place)


def _named(numbered: tuple[int, Row]) -> tuple[Hashable, frozenset[str]]:
    return _about(numbered), frozenset((numbered[1].pair.a, numbered[1].pair.b))


def _matrix(pairs: Sequence[PairedComparison], findings: Findings) -> dict[str, dict[str, float | None]]:
    """The matrix without the cells of two models who lost too many of their battles, however few these are of all."""
    matrix: dict[str, dict[str, float | None]] = {a: dict(row) for a, row in arena.win_matrix(pairs).items()}
    fought = Counter(frozenset((fight.a, fight.b)) for fight in pairs)
    for pair, unread in findings.of_pair.items():
        reason = assess(fought[pair], {"unreadable": unread}, findings.threshold, what="battles").reason
        if reason is not None and pair in fought:
            a, b = sorted(pair)
            findings.invalid(f"{a} against {b}", reason)
            matrix[a][b] = matrix[b][a] = None
    return matrix


def _rated(pairs: Sequence[PairedComparison]) -> Figures:
    try:
        board = arena.leaderboard(pairs)
    except ValueError as error:
        return {"models": [], "separability": None, "why": str(error)}
    return {
        "models": [asdict(rating) for rating in board.ratings],
        "unrated": board.unrated,
        "separability": board.separability,
    }


def _styled(pairs: Sequence[PairedComparison], findings: Findings) -> Figures | None:
    """Returns None where no pair has a style, and no ratings where too many have none."""
    known = [pair for pair in pairs if pair.style is not None]
    if not known:
        return None
    n, without = len(by_battle(known)), len(pairs) - len(known)
    if without > findings.threshold * len(pairs):
        why = f"{without:,} of {len(pairs):,} verdicts have no style that can be read, so none is controlled for"
        findings.warn(why)
        return {"n": n, "models": [], "why": why}
    try:
        board = arena.leaderboard(known, styled=True)
    except ValueError as error:
        return {"n": n, "models": [], "why": str(error)}
    return {"n": n, "coefficients": board.style, "models": [asdict(rating) for rating in board.ratings]}


def _pair(row: Fields) -> Row:
    """{model_a, model_b, winner: model_a | model_b | tie | tie (bothbad)}, or {left, right, winner}; `judge`, `tstamp`,
    an id, the `battle` that several rows are of, and the style: lmarena's `conv_metadata`, or the texts
    `conversation_a` and `conversation_b`.

    Raises `Unreadable`.
    """
    a, b = named(row, "model_a", "left"), named(row, "model_b", "right")
    if a == b:
        raise Unreadable("compares a model with itself")
    verdict = meaning("battles", row.get("winner"))
    if verdict is None:
        raise Unreadable(f"has {row.get('winner')!r} in `winner`, not model_a, model_b or tie"[:200])
    return Row(
        identifier(row, "battle_id", "id"),
        identifier(row, "question_id"),
        # MT-Bench's judgments by people and by GPT-4 have a name or [model, template] in `judge`.
        named_judge(row, *JUDGES),
        template_of(row),
        turn_of(row),
        moment(row),
        PairedComparison(a, b, _VALUES[verdict], _style(row), identifier(row, "battle")),
    )


def _style(row: Fields) -> tuple[dict[str, float], dict[str, float]] | None:
    metadata = _unpacked(row.get("conv_metadata"))
    if isinstance(metadata, Mapping):
        try:
            sides = [
                {name: _count(metadata.get(field.format(side))) for name, field in (_STYLE | _BOLD).items()}
                for side in ("a", "b")
            ]
        except Unreadable:
            return None
        return (sides[0], sides[1]) if all(side["length"] for side in sides) else None
    texts = [_answer(_unpacked(row.get(f"conversation_{side}"))) for side in ("a", "b")]
    if texts[0] is None or texts[1] is None:
        return None
    styles = [
        {"length": float(len(text)), **{name: float(len(mark.findall(text))) for name, mark in _MARKDOWN.items()}}
        for text in texts
        if text is not None
    ]
    return styles[0], styles[1]


def _unpacked(value: object) -> object:
    """What a cell of a table holds as JSON, None where it looks like turns and cannot be read, as Python prints them;
    any other value as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        unpacked: object = json.loads(value)
    except (ValueError, RecursionError):
        return None if _OBJECTS.match(value) else value
    return unpacked


def _count(value: object) -> float:
    """A number, or the sum of counts by kind (`{h1: 2, h2: 3}`); 0 where there is none. Raises `Unreadable`."""
    if isinstance(value, Mapping):
        return sum(_count(part) for part in value.values())
    counted = number({"count": value}, "count")
    if counted is not None and not 0 <= counted < 1e12:
        raise Unreadable(f"has {counted:g} as a count")
    return counted or 0.0


def _answer(value: object) -> str | None:
    """The assistant's turns of a conversation, or its text."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return None
    turns = [turn.get("content") for turn in value if isinstance(turn, Mapping) and turn.get("role") == "assistant"]
    texts = [turn_text for turn_text in turns if isinstance(turn_text, str)]
    return "\n".join(texts) if texts and len(texts) == len(turns) else None
