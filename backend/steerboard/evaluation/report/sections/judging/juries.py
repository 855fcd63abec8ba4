"""Several judges as one source: the majority of their verdicts, or the mean of their standardised scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steerboard.evaluation.report.data import EvaluationData, Floats, JuryFacts
from steerboard.evaluation.report.sections.judging.quality import kappas_with_people
from steerboard.evaluation.report.sources import Source, names_of, pair_columns, signs_of
from steerboard.evaluation.report.verdict_tables import win_shares
from steerboard_contracts.report.sections.comparison import Comparison
from steerboard_contracts.report.sections.judges import JudgeReport, JuryReport
from steerboard_statistics.bootstrap import divide
from steerboard_statistics.comparison import compare_pairs, compare_scores
from steerboard_statistics.krippendorff import alpha_interval

FEWEST = 2


def jury_sections(
    data: EvaluationData, reports: Sequence[JudgeReport], sources: Sequence[Source]
) -> tuple[list[JuryReport], list[Source]]:
    juries, of_juries = [], []
    for jury in data.juries:
        report, source = _section(data, jury, reports, sources)
        juries.append(report)
        of_juries.append(source)
    return juries, of_juries


def _section(
    data: EvaluationData, jury: JuryFacts, reports: Sequence[JudgeReport], sources: Sequence[Source]
) -> tuple[JuryReport, Source]:
    own = {source.label: source for source in sources if source.by == "judge"}
    of = {judge.id: judge.name for judge in data.judges}
    named = [of[judge] for judge in jury.judges if judge in of]
    left_out = {
        report.judge: report.invalid_because or "it has no verdicts yet"
        for report in reports
        if report.judge in named and (not report.valid or not np.isfinite(own[report.judge].signs).any())
    }
    seated = [name for name in named if name not in left_out]
    learned = {entrant for report in reports if report.judge in seated for entrant in report.trained}
    trained = [name for name in data.names() if name in learned]
    jurors = [own[name] for name in seated]
    prompts, entrants = data.shape
    pairs = len(pair_columns(entrants)[0])
    votes = np.stack([juror.signs for juror in jurors]) if jurors else np.empty((0, prompts, pairs))
    valid = len(jurors) >= FEWEST
    if not valid:
        votes = votes[:0]
    scores, signs, comparison = (
        _majority(data, votes) if jury.rule == "majority" else _mean(data, jurors if valid else [])
    )
    warnings = [f"{name} is left out: {why}" for name, why in left_out.items()]
    if trained:
        warnings.append(
            f"circular: {', '.join(trained)} learned from what one of its judges prefers, or had answers chosen by it; "
            "look at people and at other judges too"
        )
    if len(jury.judges) > len(named):
        warnings.append(f"{len(jury.judges) - len(named)} of its judges were deleted")
    if not valid:
        warnings.append(f"a jury needs {FEWEST} judges with valid verdicts; it has {len(jurors)}")
    source = Source("jury", jury.name, scores, signs, comparison, valid)
    units = votes.reshape(len(votes), prompts * pairs).T
    report = JuryReport(
        jury=jury.name,
        rule=jury.rule,
        judges=seated,
        left_out=left_out,
        valid=valid,
        trained=trained,
        comparison=comparison,
        alpha=alpha_interval(units, "nominal", items=np.repeat(np.arange(prompts), pairs).tolist(), seed=data.seed),
        people=kappas_with_people(source, sources, seed=data.seed) if valid else [],
        warnings=warnings,
    )
    return report, source


def _majority(data: EvaluationData, votes: Floats) -> tuple[Floats, Floats, Comparison]:
    """The majority of the jurors with an opinion on a pair, at least two of them: votes (jurors, prompts, pairs)."""
    spoken = np.isfinite(votes).sum(axis=0)
    signs = np.where(spoken >= FEWEST, np.sign(np.nansum(votes, axis=0)), np.nan)
    values = (signs + 1) / 2
    first, second = pair_columns(len(data.entrants))
    names = data.names()
    rows = [
        (int(row), names[first[pair]], names[second[pair]], float(values[row, pair]))
        for row, pair in zip(*np.nonzero(np.isfinite(values)), strict=True)
    ]
    scores = win_shares(values, len(data.entrants))
    columns = np.flatnonzero(np.isfinite(scores).any(axis=0))
    return scores, signs, compare_pairs(rows, names_of(data, columns), seed=data.seed)


def _mean(data: EvaluationData, jurors: Sequence[Source]) -> tuple[Floats, Floats, Comparison]:
    """Each juror's scores are standardised over all of its answers first, since their scales differ; an answer counts
    where all jurors scored it."""
    scores = np.full(data.shape, np.nan)
    if jurors:
        scores = np.stack([_standardised(juror.scores) for juror in jurors]).mean(axis=0)
    columns = np.flatnonzero(np.isfinite(scores).any(axis=0))
    comparison = compare_scores(scores[:, columns], names_of(data, columns), seed=data.seed)
    return scores, signs_of(scores), comparison


def _standardised(scores: Floats) -> Floats:
    """Mean 0 and standard deviation 1; all 0 where all are equal."""
    known = scores[np.isfinite(scores)]
    centred = scores - known.mean()
    deviation = known.std()
    return divide(centred, np.full_like(centred, deviation)) if deviation > 0 else centred
