"""Figures of verdicts on pairs: MT-Bench's two orders, and Arena-Hard's games."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace

from steerboard_contracts.errors import BadInput
from steerboard_figures.benchmark_files.reading import Figures, Findings, of_unknown_turns
from steerboard_figures.benchmark_files.repeats import UNORDERED, settled
from steerboard_figures.formats.arena_hard import BASELINE
from steerboard_figures.formats.records import Judgment
from steerboard_statistics.benchmarks import arena_hard, fastchat
from steerboard_statistics.comparison import compare_pairs
from steerboard_statistics.proportions import clustered_win_rate_interval

Row = list[Judgment]
"""The judgments of one row of a file: one, or one of each order or answer."""

_WINNERS: dict[float | None, fastchat.Winner] = {1.0: "model_1", 0.5: "tie", 0.0: "model_2", None: "error"}
_RATES = ("win_rate", "win_rate_adjusted", "low", "high", "flip_rate")
_ARENA = ("win_rate", "low", "high", "rating")


def pairs(rows: Sequence[Row], findings: Findings) -> Figures:
    """Both orders of a pair on one question and turn. The same two the other way round are the same pair: two rows of
    one order each make up both orders, of others the newest counts. Invalid models are compared with no one."""
    kept, superseded, unordered = _both_orders([_canonical(row) for row in rows], findings)
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
    points = _points(kept, games)
    models = []
    for summary in fastchat.pair_summary(games):
        interval = clustered_win_rate_interval(
            [point for point, _ in points[summary.model]], [question for _, question in points[summary.model]]
        )
        computed = {
            **asdict(summary),
            "n": summary.n,
            "win_rate": summary.wins / summary.n if summary.n else None,
            "win_rate_adjusted": summary.win_rate_adjusted,
            "low": interval.low,
            "high": interval.high,
            "flip_rate": summary.flip_rate,
        }
        vague = unordered[summary.model]
        unusable = {"errors": summary.errors, "of an unknown turn": turnless[summary.model], UNORDERED: vague}
        models.append(findings.marked(computed, _RATES, summary.n - vague, unusable, what="pairs"))
    models += findings.unread(models, _RATES)
    valid = [model["model"] for model in models if model["valid"]]
    return {
        "superseded": superseded,
        "one_order": one_order,
        "models": models,
        **(_compared(kept, games, valid, findings) if len(valid) > 1 else {}),
    }


def _points(rows: Sequence[Row], games: Sequence[fastchat.Games]) -> dict[str, list[tuple[float, Hashable]]]:
    """The share of the win of each model in each pair, with the question: 1, 1/2 or 0. Errors are left out."""
    points: dict[str, list[tuple[float, Hashable]]] = defaultdict(list)
    for row, game in zip(rows, games, strict=True):
        if game.value is not None:
            points[game.model_1].append((game.value, row[0].question_id))
            points[game.model_2].append((1 - game.value, row[0].question_id))
    return points


def _point_out_missing(rows: Sequence[Row], findings: Findings) -> None:
    """Points out the questions and turns that two models lack and others were compared on."""
    every = {(row[0].question_id, row[0].turn) for row in rows}
    judged_of: dict[tuple[str, str], set[Hashable]] = {}
    for row in rows:
        judged_of.setdefault((str(row[0].model), str(row[0].other)), set()).add((row[0].question_id, row[0].turn))
    for (first, second), judged in judged_of.items():
        findings.lacking(f"{first} against {second}", len(every - judged), len(every), "questions and turns")


def _compared(
    kept: Sequence[Row], games: Sequence[fastchat.Games], models: Sequence[str], findings: Findings
) -> Figures:
    """An item is a question: the turns of a pair are averaged first. Pairs judged in one order name no winner, because
    their verdicts may be those on a position."""
    items = {question: place for place, question in enumerate(dict.fromkeys(row[0].question_id for row in kept))}
    verdicts = [
        (items[row[0].question_id], game.model_1, game.model_2, value)
        for row, game in zip(kept, games, strict=True)
        if (value := game.value) is not None
    ]
    compared = compare_pairs(verdicts, models)
    pairs = [pair.model_dump() for pair in compared.pairs]
    among = [row for row in kept if {str(row[0].model), str(row[0].other)} <= set(models)]
    one_order = sum(len(row) == 1 for row in among)
    if one_order <= findings.threshold * len(among):
        return {"pairs": pairs, "winner": compared.winner, "why": compared.why}
    why = f"No winner: {one_order:,} of {len(among):,} pairs were judged in one order only."
    return {"pairs": [{**pair, "significant": False} for pair in pairs], "winner": None, "why": why}


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


def _both_orders(rows: Sequence[Row], findings: Findings) -> tuple[list[Row], int, Counter[str]]:
    """(rows of one pair and question with the game of each order that counts, superseded rows, by model the pairs whose
    games contradict each other in no order of time)"""
    games = [game for row in rows for game in row]
    settled_ = settled(games, _game, lambda game: game.at, _verdict, findings.repeats)
    wanted: dict[Hashable, dict[bool, Judgment]] = {}
    for game in settled_.kept:
        wanted.setdefault(_game(game)[:-1], {})[bool(game.a_first)] = game
    kept = [[games_[first] for first in sorted(games_, reverse=True)] for games_ in wanted.values()]
    given = {(game.question_id, game.turn) for row in rows for game in row if not game.turn_given}
    vague = {key[:-1] for key in settled_.unordered if (key[0], key[1]) not in given}
    unordered = Counter(str(name) for _, _, *models in vague for name in models)
    return kept, len(rows) - _needed(rows, wanted), unordered


def _needed(rows: Sequence[Row], wanted: Mapping[Hashable, Mapping[bool, Judgment]]) -> int:
    """The rows that hold the games that count: one for each pair and question, or one for each order."""
    whole = {
        key
        for row in rows
        if _verdicts_of(wanted[(key := _game(row[0])[:-1])].values()).items() <= _verdicts_of(row).items()
    }
    return sum(1 if key in whole else len(games) for key, games in wanted.items())


def _verdicts_of(games: Iterable[Judgment]) -> dict[bool, Hashable]:
    return {bool(game.a_first): _verdict(game) for game in games}


def _game(game: Judgment) -> tuple[Hashable, int, str | None, str | None, bool]:
    return game.question_id, game.turn, game.model, game.other, bool(game.a_first)


def _verdict(game: Judgment) -> Hashable:
    return None if game.value is None else (game.value, game.weight)


def arena(rows: Sequence[Row], baseline: str | None, findings: Findings) -> Figures:
    """The figures against `baseline`, else the one that most rows name, else the one of Arena-Hard v0.1, which names
    none.

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
    settled_ = settled(
        rows,
        lambda row: (row[0].question_id, frozenset(_models(row, chosen))),
        lambda row: row[0].at,
        lambda row: _verdicts(row, chosen),
        findings.repeats,
    )
    kept, superseded = settled_.kept, settled_.superseded
    unordered = Counter(name for _, names in settled_.unordered for name in names - {chosen})
    games = [game for row in kept for game in row]
    battles = [
        arena_hard.Battle(str(game.model), game.other or chosen, game.value, game.weight, game.question_id)
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
    for name, answered in questions.items():
        findings.lacking(name, len(every - answered), len(every), "questions")
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
            asdict(rate) | _unbounded(rate, chosen) | {"unparsed": silent[rate.model]},
            _ARENA,
            rate.n - 2 * unordered[rate.model],
            {
                "unparsed": silent[rate.model],
                "without the game of the other order": alone[rate.model],
                UNORDERED: 2 * unordered[rate.model],
            },
        )
        for rate in rates
    ]
    apart = sorted({name for row in kept for name in _models(row, chosen)} - {rate.model for rate in rates} - {chosen})
    for name in apart:
        dumb = {"model": name, "n": 0, "unparsed": silent[name], **dict.fromkeys(_ARENA)}
        fought = sum(name in (game.model, game.other or chosen) and game.value is not None for game in games)
        made = findings.marked(dumb, _ARENA, fought, {"unparsed": silent[name]})
        if made["valid"]:
            made |= {"valid": False, "reason": f"no chain of wins or losses connects it to {chosen}"}
            findings.invalid(name, made["reason"])
        models.append(made)
    return {
        "baseline": chosen,
        "unparsed": sum(game.value is None for game in games),
        "superseded": superseded,
        # Models without a finite rating.
        "unrated": sorted([*apart, *(rate.model for rate in rates if rate.rating is None)]),
        "models": models + findings.unread(models, _ARENA),
    }


def _verdicts(row: Row, baseline: str) -> Hashable:
    """The verdicts by who is first, as the first of the two models in alphabetical order would have them."""
    turned = str(row[0].model) > (row[0].other or baseline)
    verdicts = [
        (bool(game.a_first) != turned, 1 - game.value if turned else game.value, game.weight)
        for game in row
        if game.value is not None
    ]
    return tuple(sorted(verdicts)) or None


def _unbounded(rate: arena_hard.ArenaRate, baseline: str) -> dict[str, str]:
    """Why a model has no finite rating, if it has none."""
    if rate.rating is not None:
        return {}
    never = "has lost no game to" if rate.win_rate > 50 else "has won no game against"
    return {"why": f"{never} {baseline} or a model of finite rating, so its own rating is not finite"}


def _models(row: Row, baseline: str) -> set[str]:
    return {str(row[0].model), row[0].other or baseline}
