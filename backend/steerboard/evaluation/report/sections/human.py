"""People's rankings: one section per campaign and criterion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from statistics import median

import numpy as np

from steerboard.evaluation.report.data import CampaignFacts, EvaluationData, Floats, Ints, Ranking
from steerboard.evaluation.report.sections.outcomes import few_items
from steerboard.evaluation.report.sections.ranks import rank_shares
from steerboard.evaluation.report.sources import Source, longer_share_of_scores, names_of, share, signs_of
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.evaluation import RankShare
from steerboard_contracts.report.sections.human import AnnotatorRow, HumanReport, KappaRow
from steerboard_statistics.agreement import alpha_interval, cohen_kappa
from steerboard_statistics.bootstrap import divide
from steerboard_statistics.comparison import compare_scores
from steerboard_statistics.ranks import rank_scores

# Below this alpha, the annotators hardly agree (Krippendorff's own limit for tentative conclusions).
LOW_ALPHA = 0.667
# Above it, half of the pairs of known order are little more than guessing.
LOW_GOLD = 0.7


class Rankings:
    """The rankings of one criterion. `scores` (rankings, entrants): N + 1 - rank, ties at their average, or those that
    were given in a Likert task; NaN where not shown. `first`: the column that was shown first."""

    def __init__(
        self, data: EvaluationData, campaign: CampaignFacts, criterion: str | None, rankings: Sequence[Ranking]
    ) -> None:
        given = [ranking for ranking in rankings if criterion in ranking.ranks]
        self.rows: Ints = np.array([ranking.row for ranking in given], dtype=np.int64)
        self.annotators = [ranking.annotator for ranking in given]
        self.first: Ints = np.array([ranking.shown[0] for ranking in given], dtype=np.int64)
        values = np.full((len(given), len(data.entrants)), np.nan)
        scored = criterion is not None and criterion in campaign.points
        for place, ranking in enumerate(given):
            values[place, list(ranking.shown)] = ranking.scores[criterion or ""] if scored else ranking.ranks[criterion]
        self.scores: Floats = values if scored else rank_scores(values)
        self.both_bad = sum(ranking.both_bad for ranking in given)
        self.adjudicated = sum(ranking.adjudicated for ranking in given)
        self.prompts = len(data.prompts)

    def items(self) -> Floats:
        """Annotators averaged: (prompts, entrants)."""
        there = np.isfinite(self.scores)
        total = np.zeros((self.prompts, self.scores.shape[1]))
        number = np.zeros_like(total)
        np.add.at(total, self.rows, np.where(there, self.scores, 0.0))
        np.add.at(number, self.rows, there)
        return divide(total, number)

    def by_annotator(self) -> dict[str, Ints]:
        """Places of each person's rankings, by name."""
        places_of: dict[str, list[int]] = defaultdict(list)
        for place, name in enumerate(self.annotators):
            places_of[name].append(place)
        return {name: np.array(places) for name, places in sorted(places_of.items())}


def human_sections(data: EvaluationData, characters: Floats) -> tuple[list[HumanReport], list[Source], list[RankShare]]:
    """`characters` (prompts, entrants): length of each answer that was shown."""
    reports, sources, shares = [], [], []
    for campaign in data.campaigns:
        ranked = {name for ranking in campaign.rankings for name in ranking.ranks}
        criteria: list[str | None] = [*campaign.criteria]
        if not criteria or None in ranked:
            criteria.insert(0, None)
        for criterion in criteria:
            rankings = Rankings(data, campaign, criterion, campaign.rankings)
            counted = Rankings(data, campaign, criterion, campaign.counted)
            report, source = _section(data, campaign, criterion, rankings, counted, characters)
            reports.append(report)
            sources.append(source)
            columns = list(campaign.entrants)
            shares += rank_shares(
                counted.scores[:, columns],
                counted.rows,
                names_of(data, columns),
                "human",
                source.label,
                seed=data.seed,
            )
    return reports, sources, shares


def human_label(campaign: str, criterion: str | None) -> str:
    """How a campaign's criterion is called among the sources."""
    return campaign if criterion is None else f"{campaign}: {criterion}"


def _section(
    data: EvaluationData,
    campaign: CampaignFacts,
    criterion: str | None,
    rankings: Rankings,
    counted: Rankings,
    characters: Floats,
) -> tuple[HumanReport, Source]:
    """Agreement is that of the annotators, whatever a reviewer decided; the comparison is of what counts."""
    items = counted.items()
    columns = list(campaign.entrants)
    comparison = compare_scores(items[:, columns], names_of(data, columns), seed=data.seed)
    annotators = _annotators(data, campaign, rankings, characters)
    by = rankings.by_annotator()
    # (units, coders): a unit is one answer of one prompt.
    ratings = np.full((rankings.prompts, items.shape[1], len(by)), np.nan)
    for coder, places in enumerate(by.values()):
        ratings[rankings.rows[places], :, coder] = rankings.scores[places]
    units = np.repeat(np.arange(rankings.prompts), items.shape[1])
    alpha = alpha_interval(ratings.reshape(len(units), len(by)), "ordinal", items=units.tolist(), seed=data.seed)
    done = int(np.isfinite(items).any(axis=1).sum())
    report = HumanReport(
        campaign=campaign.name,
        criterion=criterion,
        state=campaign.state,
        task_type=campaign.task_type,
        points=campaign.points.get(criterion or ""),
        both_bad=counted.both_bad,
        adjudicated=counted.adjudicated,
        items=campaign.items,
        done_items=done,
        overlap=campaign.overlap,
        rankings=len(rankings.rows),
        comparison=comparison,
        alpha=alpha,
        annotators=annotators,
        kappas=_kappas(rankings),
        warnings=[],
    )
    report.warnings.extend(_warnings(report))
    source = Source("human", human_label(campaign.name, criterion), items, signs_of(items), comparison)
    return report, source


def _annotators(
    data: EvaluationData, campaign: CampaignFacts, rankings: Rankings, characters: Floats
) -> list[AnnotatorRow]:
    by = rankings.by_annotator()
    made = []
    for name in sorted({*by, *campaign.counts}):
        places = by.get(name, np.empty(0, dtype=np.int64))
        counts = campaign.counts.get(name)
        scores, rows = rankings.scores[places], rankings.rows[places]
        best = scores == np.nanmax(scores, axis=1, keepdims=True) if len(scores) else scores.astype(bool)
        first = best[np.arange(len(places)), rankings.first[places]] / np.maximum(best.sum(axis=1), 1)
        shown = np.isfinite(scores).sum(axis=1)
        made.append(
            AnnotatorRow(
                annotator=name,
                rankings=len(places),
                skipped=counts.skipped if counts else 0,
                flagged=counts.flagged if counts else 0,
                median_seconds=median(counts.seconds) if counts and counts.seconds else None,
                first_best=share(rows, first, seed=data.seed),
                expected_first_best=float((1 / shown).mean()) if len(shown) else None,
                longer_better=longer_share_of_scores(rows, scores, characters[rows], seed=data.seed),
                gold=_gold(campaign, rows, scores, seed=data.seed),
            )
        )
    return made


def _gold(campaign: CampaignFacts, rows: Ints, scores: Floats, *, seed: int) -> Estimate:
    """Share of the strictly ordered pairs of gold items that are in the known order; a tie counts 1/2."""
    items, points = [], []
    for row, given in zip(rows.tolist(), scores, strict=True):
        known = campaign.gold.get(row, {})
        for first, other in combinations(sorted(known), 2):
            right, difference = known[other] - known[first], given[first] - given[other]
            if right and np.isfinite(difference):
                items.append(row)
                points.append((np.sign(right) * np.sign(difference) + 1) / 2)
    return share(np.array(items, dtype=np.int64), np.array(points, dtype=np.float64), seed=seed)


def _kappas(rankings: Rankings) -> list[KappaRow]:
    """Kappa of every two annotators that share items, over better, tie and worse of the entrants in their order."""
    signs = signs_of(rankings.scores)
    by = rankings.by_annotator()
    at = {name: dict(zip(rankings.rows[places].tolist(), places.tolist(), strict=True)) for name, places in by.items()}
    made = []
    for first, other in combinations(by, 2):
        both = sorted(at[first].keys() & at[other].keys())
        if not both:
            continue
        a = signs[[at[first][row] for row in both]].ravel()
        b = signs[[at[other][row] for row in both]].ravel()
        n = int((np.isfinite(a) & np.isfinite(b)).sum())
        made.append(KappaRow(a=first, b=other, kappa=cohen_kappa(a, b), n=n))
    return made


def _warnings(report: HumanReport) -> list[str]:
    warnings = []
    if report.done_items < report.items:
        warnings.append(f"{report.done_items} of {report.items} items are ranked")
    warnings += few_items(report.comparison)
    if report.alpha.value is not None and report.alpha.value < LOW_ALPHA:
        warnings.append(f"annotators agree little: Krippendorff's alpha is {report.alpha.value:.2f}, below {LOW_ALPHA}")
    for row in report.annotators:
        if row.gold.value is not None and row.gold.value < LOW_GOLD:
            warnings.append(f"{row.annotator} has {row.gold.value:.0%} of the pairs of {row.gold.n} gold items right")
    return warnings
