"""Figures of verdicts on pairs: MT-Bench's two orders, Arena-Hard's games, and the Vicuna announcement's reviews."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import asdict, replace

from steerboard.evaluation.benchmark_files.reading import Findings, Found, newest, of_unknown_turns
from steerboard.evaluation.formats.arena_hard import BASELINE
from steerboard.evaluation.formats.records import Judgment
from steerboard_contracts.errors import BadInput
from steerboard_statistics.benchmarks import arena_hard, fastchat
from steerboard_statistics.comparison import compare_pairs
from steerboard_statistics.proportions import win_rate_interval

Row = list[Judgment]
"""The judgments of one row of a file: one, or one of each order or answer."""

_WINNERS: dict[float | None, fastchat.Winner] = {1.0: "model_1", 0.5: "tie", 0.0: "model_2", None: "error"}
_RATES = ("win_rate", "win_rate_adjusted", "low", "high", "flip_rate")
_ARENA = ("win_rate", "low", "high", "rating")
_REVIEW = ("total_1", "total_2", "share_1", "wins_1", "ties", "wins_2", "flip_rate")


def pairs(rows: Sequence[Row], findings: Findings) -> Found:
    """Both orders of a pair on one question and turn. The same two the other way round are the same pair: two rows of
    one order each make up both orders, of others the newest counts. Invalid models are compared with no one."""
    kept, superseded = _both_orders([_canonical(row) for row in rows])
    findings.repeated(None, superseded, len(rows))
    turnless = of_unknown_turns(row[0] for row in rows)
    _point_out_missing(kept, findings)
    games = [
        fastchat.Games(
            str(row[0].model),
            str(row[0].other),
            _WINNERS[row[0].value],
            _WINNERS[row[1].value] if len(row) > 1 else None,
        )
        for row in kept
    ]
    one_order = sum(len(row) == 1 for row in kept)
    if one_order:
        findings.warn(
            f"{one_order:,} of {len(kept):,} pairs were judged in one order only: their verdicts have position bias, "
            "and they have no flip rate"
        )
    models = []
    for one in fastchat.pair_summary(games):
        interval = win_rate_interval(one.wins, one.ties, one.losses)
        found = {
            **asdict(one),
            "n": one.n,
            "win_rate": one.wins / one.n if one.n else None,
            "win_rate_adjusted": one.win_rate_adjusted,
            "low": interval.low,
            "high": interval.high,
            "flip_rate": one.flip_rate,
        }
        unusable = {"errors": one.errors, "of an unknown turn": turnless[one.model]}
        models.append(findings.marked(found, _RATES, one.n, unusable, what="pairs"))
    models += findings.unread(models, _RATES)
    valid = [one["model"] for one in models if one["valid"]]
    return {
        "superseded": superseded,
        "one_order": one_order,
        "models": models,
        **(_compared(kept, games, valid) if len(valid) > 1 else {}),
    }


def _point_out_missing(rows: Sequence[Row], findings: Findings) -> None:
    """Points out the questions and turns that two models lack and others were compared on."""
    every = {(row[0].question_id, row[0].turn) for row in rows}
    mine: dict[tuple[str, str], set[Hashable]] = {}
    for row in rows:
        mine.setdefault((str(row[0].model), str(row[0].other)), set()).add((row[0].question_id, row[0].turn))
    for (one, other), judged in mine.items():
        findings.lacking(f"{one} against {other}", len(every - judged), len(every), "questions and turns")


def _compared(kept: Sequence[Row], games: Sequence[fastchat.Games], models: Sequence[str]) -> Found:
    """An item is a question: the turns of a pair are averaged first."""
    items = {question: place for place, question in enumerate(dict.fromkeys(row[0].question_id for row in kept))}
    verdicts = [
        (items[row[0].question_id], game.model_1, game.model_2, value)
        for row, game in zip(kept, games, strict=True)
        if (value := game.value) is not None
    ]
    compared = compare_pairs(verdicts, models)
    return {"pairs": [pair.model_dump() for pair in compared.pairs], "winner": compared.winner, "why": compared.why}


def _canonical(row: Row) -> Row:
    """The row as its models in alphabetical order would have it: the first game has the first of them first."""
    if str(row[0].model) < str(row[0].other):
        return row
    return [
        replace(
            game,
            model=game.other,
            other=game.model,
            value=None if game.value is None else 1 - game.value,
            a_first=not game.a_first,
        )
        for game in reversed(row)
    ]


def _both_orders(rows: Sequence[Row]) -> tuple[list[Row], int]:
    """(rows of one pair, question and turn each with the newest game of each order, superseded rows)"""
    wanted: dict[Hashable, dict[bool | None, tuple[float, Judgment]]] = {}
    used: dict[Hashable, dict[bool | None, int]] = {}
    for number, row in enumerate(rows):
        key = row[0].question_id, row[0].turn, row[0].model, row[0].other
        games, by = wanted.setdefault(key, {}), used.setdefault(key, {})
        for game in row:
            at = -1.0 if game.at is None else game.at
            if game.a_first not in games or at >= games[game.a_first][0]:
                games[game.a_first], by[game.a_first] = (at, game), number
    kept = [[games[first][1] for first in sorted(games, key=lambda one: not one)] for games in wanted.values()]
    return kept, len(rows) - len({number for by in used.values() for number in by.values()})


def reviews(file: str, reviewer: str | None, rows: Sequence[Row], findings: Findings) -> Found:
    """The reviews of the two assistants of one file. The same two answers the other way round are the same pair, whose
    newest review counts; those of both orders that prefer different answers are flips.

    A file of several pairs of assistants has no figure.
    """
    straight = _straight(rows)
    kept, superseded = newest(straight, lambda one: one[0], lambda one: one[1][0].at)
    orders: dict[Hashable, dict[bool, float | None]] = {}
    for key, row, turned in straight:
        orders.setdefault(key, {})[turned] = _preferred(row)
    # A pair of which one order was not parsed has no flip, whichever of its reviews is the newest.
    both = [said for said in orders.values() if len(said) == 2]
    told = [said for said in both if None not in said.values()]
    scores = [None if None in (row[0].value, row[1].value) else [row[0].value, row[1].value] for _, row, _ in kept]
    summary = fastchat.review_summary(scores)
    flips = {"flip_rate": sum(said[True] != said[False] for said in told) / len(told) if told else None}
    findings.repeated(file, superseded - len(both), len(rows))
    if any(row[0].model is None for row in rows):
        findings.warn(f"{file} names answers, not models: assistant 1 gave the first answer of each row")
    if len(told) < len(orders):
        findings.warn(
            f"{file}: {len(orders) - len(told):,} of {len(orders):,} pairs were reviewed in one order only: their "
            "scores have position bias, and they have no flip rate"
        )
    found = {
        "file": file,
        **({} if reviewer is None else {"judge": reviewer}),
        **asdict(summary),
        **flips,
        "share_1": summary.share_1,
        "superseded": superseded,
    }
    parsed_ = {key for key, row, _ in kept if _preferred(row) is not None}
    half = sum(None in said.values() for key, said in orders.items() if key in parsed_)
    several = len(kept) - len({row[0].question_id for _, row, _ in kept})
    if several:
        why = f"{several:,} questions have reviews of further answers: the file is of several pairs of assistants"
        findings.invalid(file, why)
        return {"file": file, "n": len(kept), **dict.fromkeys(_REVIEW), "valid": False, "reason": why}
    lost = {"unparsed": summary.unparsed, "with the other order unparsed": half}
    return findings.marked(found, _REVIEW, summary.n - half, lost, group=file)


def _straight(rows: Sequence[Row]) -> list[tuple[Hashable, Row, bool]]:
    """(what it is about, the review with the answers in the order of the file, whether they were turned for that)"""
    first: dict[Hashable, Hashable] = {}
    found: list[tuple[Hashable, Row, bool]] = []
    for row in rows:
        ids = [one.model or one.answer_id for one in row]
        key = row[0].question_id, frozenset(ids)
        # Models have one order in the whole file; answers, which nothing else joins, one on each question.
        pair = frozenset(ids) if row[0].model is not None else key
        turned = first.setdefault(pair, ids[0]) != ids[0]
        found.append((key, row[::-1] if turned else row, turned))
    return found


def _preferred(row: Row) -> float | None:
    one, other = row[0].value, row[1].value
    return None if one is None or other is None else float(one > other) - float(one < other)


def arena(rows: Sequence[Row], baseline: str | None, findings: Findings) -> Found:
    """Against `baseline`, else the one that most rows name, else the one of Arena-Hard v0.1, which names none.

    Raises `BadInput` where no one fought against it, or it has rows of its own against one that they do not name.
    """
    named = Counter(row[0].other for row in rows if row[0].other is not None)
    chosen = baseline or (named.most_common(1)[0][0] if named else None) or BASELINE
    own = sum(row[0].other is None and row[0].model == chosen for row in rows)
    if own:
        raise BadInput(
            f"{own:,} rows of {chosen} name no baseline, so they do not compare with {chosen}",
            code="invalid_request",
            hint=("Leave --baseline out, or name" if baseline else "Name")
            + " the one that these rows are against in a field `baseline`.",
        )
    kept, superseded = newest(
        rows,
        lambda row: (row[0].question_id, frozenset((row[0].model, row[0].other or chosen))),
        lambda row: row[0].at,
    )
    games = [game for row in kept for game in row]
    battles = [
        arena_hard.Battle(str(game.model), game.other or chosen, game.value, game.weight)
        for game in games
        if game.value is not None
    ]
    silent = Counter(
        name for game in games if game.value is None for name in {str(game.model), game.other or chosen} - {chosen}
    )
    # The benchmark has two games on a question; one of them alone has the bias of its order.
    alone = Counter(name for row in kept if len(row) == 1 for name in _models(row, chosen) - {chosen})
    findings.repeated(None, superseded, len(rows))
    questions: dict[str, set[Hashable]] = {}
    for row in kept:
        for name in _models(row, chosen) - {chosen}:
            questions.setdefault(name, set()).add(row[0].question_id)
    every = set().union(*questions.values())
    for name, mine in questions.items():
        findings.lacking(name, len(every - mine), len(every), "questions")
    if len(named) > 1:
        findings.warn(
            f"the rows compare with {len(named)} baselines ({', '.join(sorted(named))}); win rates are against "
            f"{chosen}, by way of the others' games where there are no direct ones"
        )
    try:
        rates = arena_hard.win_rates(battles, chosen)
    except ValueError as error:
        if battles:
            raise BadInput(str(error), code="missing_input", hint="Name another baseline with --baseline.") from error
        rates = []
    models = [
        findings.marked(
            asdict(rate) | _interval(rate) | {"unparsed": silent[rate.model]},
            _ARENA,
            rate.n,
            {"unparsed": silent[rate.model], "without the game of the other order": alone[rate.model]},
        )
        for rate in rates
    ]
    unrated = sorted(
        {name for row in kept for name in _models(row, chosen)} - {rate.model for rate in rates} - {chosen}
    )
    for name in unrated:
        dumb = {"model": name, "n": 0, "unparsed": silent[name], **dict.fromkeys(_ARENA)}
        fought = sum(name in (game.model, game.other or chosen) and game.value is not None for game in games)
        made = findings.marked(dumb, _ARENA, fought, {"unparsed": silent[name]})
        if made["valid"]:
            made |= {"valid": False, "reason": f"no chain of games connects it to {chosen}"}
            findings.invalid(name, made["reason"])
        models.append(made)
    return {
        "baseline": chosen,
        "unparsed": sum(game.value is None for game in games),
        "superseded": superseded,
        # Models whose games were not parsed, or that no chain of games joins to the baseline.
        "unrated": unrated,
        "models": models + findings.unread(models, _ARENA),
    }


def _interval(rate: arena_hard.ArenaRate) -> dict[str, float | None]:
    """None of games that all ended alike: no draw of them differs, however few they are."""
    alike = rate.low == rate.high
    return {"low": None if alike else rate.low, "high": None if alike else rate.high}


def _models(row: Row, baseline: str) -> set[str]:
    return {str(row[0].model), row[0].other or baseline}
