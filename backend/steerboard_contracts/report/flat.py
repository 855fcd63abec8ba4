"""The report of an evaluation as one flat row for each entrant of the recipe, which scripts read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from steerboard_contracts.decoding import guided_suffix
from steerboard_contracts.known_quality import KNOWN_QUALITY
from steerboard_contracts.methods import label_of
from steerboard_contracts.report.baseline import BASE, baseline_place
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.evaluation import EvaluationReport, MethodsRow
from steerboard_contracts.report.pipeline import EvaluationRef, MethodRow, PipelineReport, ReportSummary
from steerboard_contracts.report.sections.comparison import pair_of
from steerboard_contracts.report.sections.entrants import EntrantRow
from steerboard_contracts.report.sections.recipe import RecipeSection


def flat(report: EvaluationReport) -> PipelineReport:
    """The report of an evaluation with the section of a recipe. Without a reward model it has no rows."""
    recipe = report.recipe
    if recipe is None:
        raise ValueError(f"the report of {report.evaluation} has no section of a recipe")
    known = {entrant.name: entrant for entrant in report.entrants}
    entrants = [known[name] for name in recipe.entrants if name in known] if recipe.reward_model.name else []
    rows = [_row(report, recipe, entrant, entrants) for entrant in entrants]
    shared = recipe.model_dump(exclude={"entrants", "checks"})
    verdict = report.headline.text if report.headline is not None else ""
    return PipelineReport(
        **shared,
        synthetic=recipe.synthetic,
        evaluation=EvaluationRef(id=report.evaluation_id, name=report.evaluation) if report.evaluation_id else None,
        methods=rows,
        prompts=report.prompts,
        headline=report.headline,
        baseline=next((label(row) for row in rows if row.name == report.baseline), None),
        summary=ReportSummary(verdict=verdict, cost=cost_line(rows), checks=recipe.checks),
        report=report,
    )


def label(row: MethodRow) -> str:
    """The label with the score asked for: `NAME at 5.0`; `NAME (best of 8)`."""
    name = _unscored_label(row)
    return name if row.score is None else f"{name} at {row.score:.1f}"


def baseline_label(rows: Iterable[MethodRow]) -> str | None:
    """The label of the row that the win rates are against, where a report does not name it."""
    given = list(rows)
    place = baseline_place(given)
    return None if place is None else label(given[place])


def best_rows(report: PipelineReport) -> list[MethodRow]:
    """The best row of each model, and of its best-of-n, the best first."""
    best: dict[tuple[str, int | None], MethodRow] = {}
    for row in report.methods:
        key = row.entrant, row.best_of
        if key not in best or row.reward_mean > best[key].reward_mean:
            best[key] = row
    return sorted(best.values(), key=lambda row: row.reward_mean, reverse=True)


def cost_line(rows: Iterable[MethodRow]) -> str:
    """Device-seconds of every method's own run, and of all runs that it needs, the cheapest first. Empty where no total
    is known, as in reports of earlier versions."""
    by_name: dict[str, MethodRow] = {}
    for row in rows:
        by_name.setdefault(_unscored_label(row), row)
    if all(row.total_device_seconds is None for row in by_name.values()):
        return ""
    by_total = sorted(by_name.items(), key=lambda pair: pair[1].total_device_seconds or 0.0)
    parts = [
        f"{name} {_seconds(row.own_device_seconds)} / {_seconds(row.total_device_seconds)}" for name, row in by_total
    ]
    shared = {run.name: run.device_seconds for row in by_name.values() for run in row.shared_runs}
    words = f"Device-seconds, own run / with all it needs: {', '.join(parts)}."
    if shared:
        words += f" Shared by several: {', '.join(f'{name} {cost:.1f}' for name, cost in shared.items())}."
    return words


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f}"


def _unscored_label(row: MethodRow) -> str:
    name = label_of(row.method, row.entrant) + (f" ({row.variant})" if row.variant else "")
    return name if row.best_of is None else f"{name} (best of {row.best_of})"


def _row(
    report: EvaluationReport, recipe: RecipeSection, entrant: EntrantRow, entrants: Sequence[EntrantRow]
) -> MethodRow:
    name = entrant.name
    figures = next(row for row in report.methods if row.entrant == name)
    cost = next((cost for cost in report.costs if cost.entrant == name), None)
    fluency = next((row for row in report.fluency.entrants if row.entrant == name), None) if report.fluency else None
    main, independent = recipe.reward_model.name, recipe.reward_model.independent_name
    reward, quality = _of(figures.reward, main), _of(figures.reward, KNOWN_QUALITY)
    own = cost.own_device_seconds if cost else None
    return MethodRow(
        method=entrant.method or BASE,
        name=name,
        entrant=entrant.model or name,
        variant=_variant(entrant, entrants),
        score=entrant.score,
        guidance=entrant.guidance,
        best_of=entrant.best_of,
        chosen_by=entrant.chosen_by,
        n=report.prompts,
        reward_mean=reward.value or 0.0,
        reward_low=reward.low,
        reward_high=reward.high,
        independent_reward_mean=_of(figures.reward, independent).value,
        length_mean=(fluency.tokens if fluency else None) or 0.0,
        truncated=entrant.truncated or 0.0,
        distinct_1=(fluency.distinct_1 if fluency else None) or 0.0,
        distinct_2=(fluency.distinct_2 if fluency else None) or 0.0,
        perplexity=fluency.perplexity.value if fluency else None,
        empty=fluency.empty if fluency else None,
        repeated=fluency.repeated if fluency else None,
        win_rate_vs_baseline=_of(figures.reward_win_rate, main).value,
        independent_win_rate_vs_baseline=_of(figures.reward_win_rate, independent).value,
        judge_win_rate_vs_baseline=_by_judge(report, recipe, figures),
        quality_mean=quality.value,
        quality_low=quality.low,
        quality_high=quality.high,
        quality_gain=_gain(report, name),
        device_seconds=own,
        own_device_seconds=own,
        total_device_seconds=cost.ledger.device_seconds if cost and cost.runs else None,
        shared_runs=cost.shared if cost else [],
        log_prob_seconds=next((phase.device_seconds for phase in cost.ledger.phases if phase.phase == "reference"), 0.0)
        if cost
        else 0.0,
    )


def _of(estimates: Mapping[str, Estimate], source: str | None) -> Estimate:
    return (estimates.get(source) if source is not None else None) or Estimate(value=None, n=0)


def _variant(entrant: EntrantRow, entrants: Sequence[EntrantRow]) -> str | None:
    """How it differs from others of its method: its stage, its guidance, how many answers it gives to each prompt."""
    parts = []
    if any(other.model != entrant.model for other in entrants if other.method == entrant.method):
        parts.append(_stage(entrant))
    if entrant.guidance != 1:
        parts.append(f"guidance {entrant.guidance:g}")
    alike = [other for other in entrants if _request(other) == _request(entrant)]
    if entrant.samples > 1 and any(other.samples != entrant.samples for other in alike):
        parts.append(f"{entrant.samples} samples")
    return ", ".join(parts) or None


def _request(entrant: EntrantRow) -> tuple[object, ...]:
    return entrant.model, entrant.score, entrant.guidance, entrant.best_of


def _stage(entrant: EntrantRow) -> str:
    """The entrant's name without what a recipe appends to its stage's."""
    name = entrant.name if entrant.best_of is None else entrant.name.removesuffix(f"_best_of_{entrant.best_of}")
    name = name if entrant.samples == 1 else name.removesuffix(f"_{entrant.samples}_samples")
    name = name if entrant.guidance == 1 else name.removesuffix(guided_suffix(entrant.guidance))
    return name if entrant.score is None else name.removesuffix(f"_{entrant.score.slug}")


def _by_judge(report: EvaluationReport, recipe: RecipeSection, figures: MethodsRow) -> float | None:
    judge = next((section for section in report.judges if section.judge == recipe.judge), None)
    if judge is None or not judge.valid or judge.invalid_entrants.keys() & {figures.entrant, report.baseline}:
        return None
    return _of(figures.judge_win_rate, judge.judge).value


def _gain(report: EvaluationReport, entrant: str) -> Estimate | None:
    """The gain in the known quality, as the difference from the baseline."""
    known = next((source for source in report.rewards if source.reward_model == KNOWN_QUALITY), None)
    if known is None or report.baseline is None:
        return None
    pair = pair_of(known.comparison, entrant, report.baseline)
    return pair.difference if pair is not None else None
