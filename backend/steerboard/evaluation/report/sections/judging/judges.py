"""Each judge: counts, validity, comparison, biases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from steerboard.evaluation.judges.calibrations import uncalibrated
from steerboard.evaluation.report.data import EvaluationData, Floats, Ints, JudgeFacts, Repeats, Verdicts
from steerboard.evaluation.report.sections.benchmarks import alpaca_rows, arena_rows, single_rows
from steerboard.evaluation.report.sections.judging.validity import invalid_entrants, without
from steerboard.evaluation.report.sections.outcomes import few_items
from steerboard.evaluation.report.sections.ranks import rank_shares
from steerboard.evaluation.report.sources import (
    Source,
    family_share,
    longer_share,
    longer_share_of_scores,
    names_of,
    pair_columns,
    share,
    signs_of,
)
from steerboard.evaluation.report.verdict_tables import (
    PAIR_STYLES,
    PairUnits,
    ScoreUnits,
    pair_flips,
    pair_units,
    pair_values,
    score_units,
    shown_first,
    win_shares,
)
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.evaluation import RankShare
from steerboard_contracts.report.sections.comparison import Comparison, ScoreRow
from steerboard_contracts.report.sections.judges import JudgeBiases, JudgeReport, SelfPreference
from steerboard_statistics.comparison import compare_pairs, compare_scores
from steerboard_statistics.ranks import without_noise
from steerboard_statistics.validity import UNUSABLE_THRESHOLD, assess

# Above it, position decides about as often as the answers do.
HIGH_FLIP_RATE = 0.3
NOTHING = Estimate(value=None, n=0)


def judge_sections(data: EvaluationData, characters: Floats) -> tuple[list[JudgeReport], list[Source], list[RankShare]]:
    """`characters` (prompts, entrants, turns): lengths of the judged answers."""
    reports, sources, shares = [], [], []
    for judge in data.judges:
        report, source = _section(data, judge, characters)
        reports.append(report)
        sources.append(source)
        columns = source.columns()
        complete = judge.style not in PAIR_STYLES or _every_pair(source.signs, columns, len(data.entrants))
        if len(columns) > 1 and complete:
            rows = np.arange(len(data.prompts))
            names = names_of(data, columns)
            shares += rank_shares(source.scores[:, columns], rows, names, "judge", judge.name, seed=data.seed)
    return reports, sources, shares


def _every_pair(signs: Floats, columns: Ints, entrants: int) -> bool:
    """Whether all pairs of the entrants were judged; against a baseline alone no one has a rank."""
    first, second = pair_columns(entrants)
    wanted = np.asarray(np.isin(first, columns) & np.isin(second, columns))
    judged = np.asarray(np.isfinite(signs).any(axis=0))
    return bool(judged[wanted].all())


def _section(data: EvaluationData, judge: JudgeFacts, characters: Floats) -> tuple[JudgeReport, Source]:
    counts = {status: judge.statuses.get(status, 0) for status in ("ok", "unparsed", "refused", "error", "superseded")}
    total = counts["ok"] + counts["unparsed"] + counts["refused"] + counts["error"]
    given = judge.settings.get("unparsed_threshold")
    threshold = UNUSABLE_THRESHOLD if given is None else float(given)
    lost = {name: counts[name] for name in ("unparsed", "refused", "error")} | {"unreadable": judge.unreadable}
    validity = assess(counts["ok"], lost, threshold, what="verdicts")
    why = validity.reason or uncalibrated(judge.settings, judge.calibrations) if total else None
    silent = (
        invalid_entrants(judge.verdicts, threshold)
        if why is None
        else {int(column): why for column in judge.verdicts.entrants()}
    )
    invalid = {data.entrants[column].name: reason for column, reason in silent.items()}
    # These entrants have no figure anywhere: no mean, no rank, no agreement and no bias.
    judge = replace(judge, verdicts=without(judge.verdicts, list(silent)))
    paired = judge.style in PAIR_STYLES
    prompts, entrants = data.shape
    if paired:
        pairs = pair_units(judge.verdicts, entrants, judge.style)
        scores, signs, comparison = _paired(data, judge, pairs)
        flips: Floats | None = pair_flips(pairs, prompts, entrants)
        biases, half = _pair_biases(judge.verdicts, pairs, characters, seed=data.seed), pairs.half
        single = []
    else:
        units = score_units(judge.verdicts, entrants)
        scores = units.items(prompts)
        signs, flips, half = signs_of(scores), None, 0
        columns = np.flatnonzero(np.isfinite(scores).any(axis=0))
        comparison = compare_scores(scores[:, columns], names_of(data, columns), seed=data.seed)
        biases = _score_biases(judge, units, characters, seed=data.seed)
        single = single_rows(data, judge, units)
    nothing = [ScoreRow(entrant=name, mean=NOTHING) for name in invalid]
    comparison = comparison.model_copy(
        update={"scores": [*comparison.scores, *nothing], "why": comparison.why if why is None else why}
    )
    report = JudgeReport(
        judge=judge.name,
        style=judge.style,
        model=judge.model,
        imported=judge.imported,
        state=judge.state,
        verdicts=total,
        ok=counts["ok"],
        unparsed=counts["unparsed"],
        refused=counts["refused"],
        errors=counts["error"],
        superseded=counts["superseded"],
        unreadable=judge.unreadable,
        unparsed_rate=validity.rate,
        unparsed_threshold=threshold,
        valid=why is None,
        invalid_because=why,
        invalid_entrants=invalid,
        trained=[entrant.name for entrant in data.entrants if judge.identity in entrant.trained_on],
        prompt_tokens=judge.prompt_tokens,
        completion_tokens=judge.completion_tokens,
        comparison=comparison,
        biases=biases,
        alpaca_eval=alpaca_rows(data, judge, characters) if judge.style == "alpaca_eval" else [],
        arena_hard=arena_rows(data, judge) if judge.style == "arena_hard" else [],
        single=single,
        warnings=[],
    )
    report.warnings.extend(_warnings(report, judge, half))
    return report, Source("judge", judge.name, scores, signs, comparison, report.valid, flips)


def _paired(data: EvaluationData, judge: JudgeFacts, pairs: PairUnits) -> tuple[Floats, Floats, Comparison]:
    prompts, entrants = data.shape
    values = pair_values(pairs, prompts, entrants)
    scores = win_shares(values, entrants)
    columns = np.flatnonzero(np.isfinite(scores).any(axis=0))
    first, second = pair_columns(entrants)
    all_names = data.names()
    rows = [
        (int(row), all_names[first[pair]], all_names[second[pair]], float(values[row, pair]))
        for row, pair in zip(*np.nonzero(np.isfinite(values)), strict=True)
    ]
    comparison = compare_pairs(rows, names_of(data, columns), seed=data.seed)
    if judge.style == "alpaca_eval":
        comparison = _mean_preferences(comparison)
    # As `compare_pairs` decides who wins.
    return scores, np.sign(without_noise(2 * values - 1)), comparison


def _mean_preferences(comparison: Comparison) -> Comparison:
    """AlpacaEval's win rate is the mean of p, whose difference is 2 p - 1, and not the share of items won."""

    def half(value: float | None) -> float | None:
        return None if value is None else (value + 1) / 2

    rows = []
    for row in comparison.pairs:
        difference = row.difference
        if difference is not None:
            rate = Estimate(
                value=half(difference.value), low=half(difference.low), high=half(difference.high), n=difference.n
            )
            row = row.model_copy(update={"win_rate": rate})
        rows.append(row)
    return comparison.model_copy(update={"pairs": rows})


def _pair_biases(verdicts: Verdicts, pairs: PairUnits, characters: Floats, *, seed: int) -> JudgeBiases:
    used = verdicts.ok & (verdicts.b >= 0) & (verdicts.a_first >= 0)
    won = (np.sign(verdicts.value[used] - 0.5) + 1) / 2
    won = np.where(verdicts.a_first[used] == 1, won, 1 - won)
    first_length = _turn_lengths(characters, pairs.row, pairs.turn)[np.arange(len(pairs.row)), pairs.first]
    second_length = _turn_lengths(characters, pairs.row, pairs.turn)[np.arange(len(pairs.row)), pairs.second]
    return JudgeBiases(
        first_wins=share(verdicts.row[used], won, seed=seed),
        longer_wins=longer_share(pairs.row, np.sign(pairs.value - 0.5), first_length, second_length, seed=seed),
        flip_rate=share(pairs.row[pairs.both], pairs.flipped[pairs.both].astype(np.float64), seed=seed),
        self_preference=None,
        expected_first_wins=0.5,
    )


def _score_biases(judge: JudgeFacts, units: ScoreUnits, characters: Floats, *, seed: int) -> JudgeBiases:
    """Single answers have no order; of answers judged together the first is the one with `a_first`."""
    rows, shown, scores = shown_first(judge.verdicts, units.scores.shape[1])
    best = scores == np.nanmax(scores, axis=1, keepdims=True) if len(scores) else scores.astype(bool)
    first = best[np.arange(len(rows)), shown] / np.maximum(best.sum(axis=1), 1)
    together = np.isfinite(scores).sum(axis=1)
    lengths = _turn_lengths(characters, units.row, units.turn)
    return JudgeBiases(
        first_wins=share(rows, first, seed=seed),
        longer_wins=longer_share_of_scores(units.row, units.scores, lengths, seed=seed),
        flip_rate=_flips(judge.reversed_reviews, seed=seed),
        self_preference=None,
        expected_first_wins=float((1 / together).mean()) if len(rows) else None,
    )


def _flips(both_orders: Repeats | None, *, seed: int) -> Estimate:
    if both_orders is None:
        return NOTHING
    return share(both_orders.row, (both_orders.first != both_orders.again).astype(np.float64), seed=seed)


def _turn_lengths(characters: Floats, rows: Ints, turns: Ints) -> Floats:
    """Length of each entrant's answer of that turn: (n, entrants)."""
    last = characters.shape[2] - 1
    return np.where((turns <= last + 1)[:, None], characters[rows, :, np.clip(turns - 1, 0, last)], np.nan)


def add_self_preference(data: EvaluationData, reports: Sequence[JudgeReport], sources: Sequence[Source]) -> None:
    """Each judge's own figure, and those of all sources outside its family on the same items."""
    judges = {judge.name: judge for judge in data.judges}
    families: dict[str, Any] = {name: judge.family for name, judge in judges.items()}
    for report in reports:
        family = families[report.judge]
        own = np.array([entrant.family == family for entrant in data.entrants])
        if family is None or not own.any() or own.all():
            continue
        source = next(source for source in sources if source.by == "judge" and source.label == report.judge)
        others = {}
        for other in sources:
            if other is source or (other.by == "judge" and families[other.label] == family):
                continue
            share = family_share(other, own, source.signs, seed=data.seed)
            if share.n:
                others[other.label] = share
        report.biases.self_preference = SelfPreference(
            family=family, own=family_share(source, own, source.signs, seed=data.seed), others=others
        )


def _warnings(report: JudgeReport, judge: JudgeFacts, half: int) -> list[str]:
    warnings = []
    unusable = report.unparsed_rate > report.unparsed_threshold
    if report.trained:
        warnings.append(
            f"circular: {', '.join(report.trained)} learned from what this judge prefers, or had answers "
            "chosen by it; look at people and at other judges too"
        )
    if report.verdicts == 0:
        warnings.append("there are no verdicts yet")
    elif report.ok < report.verdicts or report.unreadable:
        warnings.append(
            f"{report.verdicts - report.ok + report.unreadable} of {report.verdicts + report.unreadable} verdicts are "
            f"unusable and are left out ({report.unparsed} unparsed, {report.refused} refused, {report.errors} errors"
            + (f", {report.unreadable} unreadable in the file)" if report.unreadable else ")")
            + (f": more than {report.unparsed_threshold:.0%}, so this judge is not valid" if unusable else "")
        )
    if report.invalid_because is not None and not unusable:
        warnings.append(f"not valid: {report.invalid_because}")
    if report.valid:
        warnings += [f"{name} has no figures: {reason}" for name, reason in report.invalid_entrants.items()]
    if report.superseded:
        warnings.append(f"{report.superseded} verdicts were superseded by newer ones of the same item")
    if judge.unordered:
        warnings.append(
            f"{judge.unordered} items have several verdicts that no time orders: the last one in the file counts"
        )
    if half:
        warnings.append(f"{half} pairs were judged in one order only, though both were requested, and are left out")
    if judge.one_order:
        warnings.append(f"{judge.one_order} questions were reviewed in one order only: their scores have position bias")
    warnings += few_items(report.comparison)
    flips = report.biases.flip_rate
    if flips.value is not None and flips.value > HIGH_FLIP_RATE:
        warnings.append(f"{flips.value:.0%} of verdicts change with the order of the answers")
    return warnings
