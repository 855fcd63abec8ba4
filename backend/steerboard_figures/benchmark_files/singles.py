"""Figures of single-answer grading: MT-Bench and arena-bench."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from steerboard_figures.benchmark_files.reading import Figures, Findings, of_unknown_turns
from steerboard_figures.benchmark_files.repeats import UNORDERED, settled
from steerboard_figures.formats.records import Judgment
from steerboard_statistics import ranks
from steerboard_statistics.benchmarks import fastchat
from steerboard_statistics.bootstrap import ratio_interval
from steerboard_statistics.comparison import compare_scores
from steerboard_statistics.validity import assess

_FIGURES = ("average", "low", "high", "turns", "categories")
# The categories of MT-Bench's own questions, ten of each.
_MT_BENCH = ("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities")
_FIRST, _LAST = 81, 160


def singles(rows: Sequence[Judgment], categories: Mapping[Hashable, str] | None, findings: Findings) -> Figures:
    """Means by turn and category with 95% intervals over questions; of several models the ranks, tests and winner on
    the questions that all have a score on. `categories`: by question id, MT-Bench's own where there are none.

    Invalid models are compared with no one.
    """
    every = [fastchat.Rating(row.question_id, str(row.model), row.turn, row.value, row.at) for row in rows]
    settled_ = settled(every, _about, lambda row: row.at, lambda row: row.score, findings.repeats)
    ratings = settled_.kept
    superseded = Counter(row.model for row in every) - Counter(row.model for row in ratings)
    turnless = of_unknown_turns(rows)
    # Rows that may be of two turns are counted as that.
    guessed = {_about(question) for question, row in zip(every, rows, strict=True) if not row.turn_given}
    unordered = Counter(key[1] for key in settled_.unordered if key not in guessed)
    named = categories or _mt_bench({str(row.question_id) for row in rows})
    by_category = fastchat.by_category(ratings, named)
    parts = _parts(ratings, named)
    models = []
    for summary in fastchat.single_summary(ratings):
        computed = {
            **asdict(summary),
            "superseded": superseded[summary.model],
            "turns": {str(turn): mean for turn, mean in summary.turns.items()},
            "counts": {str(turn): count for turn, count in summary.counts.items()},
            "categories": by_category.get(summary.model, {}),
            **_interval(ratings, summary.model),
        }
        vague = unordered[summary.model]
        unusable = {"unparsed": summary.unparsed, "of an unknown turn": turnless[summary.model], UNORDERED: vague}
        made = findings.marked(computed, _FIGURES, summary.n - vague, unusable)
        models.append(_without_lost_parts(made, parts, findings) if made["valid"] else made)
        judged = summary.n + summary.unparsed
        findings.lacking(summary.model, len(summary.missing), judged + len(summary.missing), "questions and turns")
        findings.repeated(summary.model, superseded[summary.model], judged + superseded[summary.model])
    models += findings.unread(models, _FIGURES)
    compared = [model["model"] for model in models if model["valid"]]
    return {"models": models, **(_ranked(ratings, compared) if len(compared) > 1 else {})}


def _about(row: fastchat.Rating) -> tuple[Hashable, str, int]:
    return row.question_id, row.model, row.turn


def _parts(
    ratings: Sequence[fastchat.Rating], categories: Mapping[Hashable, str]
) -> dict[tuple[str, str, str], list[bool]]:
    """{(model, `turns` or `categories`, which): whether each judgment was parsed}."""
    parts: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for row in fastchat.newest(ratings)[0]:
        parsed = row.score is not None and row.score != fastchat.UNPARSED
        parts[row.model, "turns", str(row.turn)].append(parsed)
        if (category := categories.get(row.question_id)) is not None:
            parts[row.model, "categories", category].append(parsed)
    return parts


def _without_lost_parts(
    figures: Figures, parts: Mapping[tuple[str, str, str], list[bool]], findings: Findings
) -> Figures:
    """A turn or a category that lost too many of its judgments has no mean, however few of the whole these are."""
    partial: dict[str, dict[str, float]] = {}
    for (model, kind, name), parsed in parts.items():
        if model != figures["model"]:
            continue
        reason = assess(sum(parsed), {"unparsed": parsed.count(False)}, findings.threshold).reason
        if reason is not None:
            findings.invalid(f"{model}, {name}" if kind == "categories" else f"{model}, turn {name}", reason)
            partial.setdefault(kind, {})[name] = figures[kind].get(name)
            figures[kind] = {**figures[kind], name: None}
    return {**figures, "partial": partial} if partial else figures


def _interval(ratings: Sequence[fastchat.Rating], model: str) -> dict[str, float | None]:
    """The interval of the mean over rows, by questions: two turns of one conversation are not independent items."""
    sums: dict[Hashable, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in _scored(ratings):
        if row.model == model and row.score is not None:
            sums[row.question_id][0] += row.score
            sums[row.question_id][1] += 1
    means = {total / count for total, count in sums.values()}
    if len(means) < 2:
        return {"low": None, "high": None}  # equal items tell nothing about how others would differ
    interval = ratio_interval([total for total, _ in sums.values()], [count for _, count in sums.values()])
    return {"low": interval.low, "high": interval.high}


def _scored(ratings: Sequence[fastchat.Rating]) -> list[fastchat.Rating]:
    return [row for row in fastchat.newest(ratings)[0] if row.score is not None and row.score != fastchat.UNPARSED]


def _ranked(ratings: Sequence[fastchat.Rating], models: Sequence[str]) -> dict[str, Any]:
    """A question counts once, by the mean over those of its turns that all models have a score on."""
    turns: dict[Hashable, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in _scored(ratings):
        if row.model in models and row.score is not None:
            turns[row.question_id][row.turn][row.model] = row.score
    whole = [
        np.mean(complete, axis=0)
        for of_question in turns.values()
        if (complete := [[turn[m] for m in models] for turn in of_question.values() if len(turn) == len(models)])
    ]
    if not whole:
        return {"items_of_all": 0, "rank_scores": None, "friedman": None, "pairs": [], "winner": None}
    scores = ranks.without_noise(whole)
    tested = ranks.friedman(scores)
    compared = compare_scores(scores, models, pairwise_only=True)
    return {
        "items_of_all": len(whole),
        "rank_scores": dict(zip(models, ranks.rank_scores(-scores).mean(axis=0).tolist(), strict=True)),
        "friedman": tested.model_dump() if tested else None,
        "pairs": [pair.model_dump() for pair in compared.pairs],
        "winner": compared.winner,
        "why": compared.why,
    }


def _mt_bench(questions: set[str]) -> dict[Hashable, str]:
    """The categories of questions that all are MT-Bench's, else none."""
    if not all(
        question.isdecimal() and len(question) < 6 and _FIRST <= int(question) <= _LAST for question in questions
    ):
        return {}
    return {question: _MT_BENCH[(int(question) - _FIRST) // 10] for question in questions}
