"""What a recipe's stage adds to the report of its evaluation: control, percentiles, examples, caveats and claims."""

from __future__ import annotations

from steerboard.evaluation.recipe_stage.findings import Findings
from steerboard.evaluation.recipe_stage.training import training_lines
from steerboard.evaluation.report.sections.reservations import MANY_CUT
from steerboard_contracts.conditions.condition import varied
from steerboard_contracts.held_out_changes import in_words
from steerboard_contracts.report.baseline import BASE
from steerboard_contracts.report.claims import checks
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.flat import flat
from steerboard_contracts.report.sections.comparison import score_of
from steerboard_contracts.report.sections.recipe import (
    Control,
    Example,
    LabelledRewards,
    RecipeSection,
    RewardModelSummary,
)
from steerboard_contracts.run_kinds.evaluate import EvaluateConfig
from steerboard_contracts.wording import listed
from steerboard_statistics.correlation import spearman

FEW_PROMPTS = 30


def with_recipe(config: EvaluateConfig, findings: Findings) -> EvaluationReport:
    """The evaluation's report with the recipe's section. Raises nothing of its own: everything that can be wrong was
    refused when the stage began."""
    main, independent = findings.main, findings.independent
    section = RecipeSection(
        entrants=[entrant.name for entrant in findings.entries],
        reward_model=RewardModelSummary(
            name=main.reward_model,
            held_out_accuracy=main.accuracy.value,
            pairs=main.accuracy.n,
            independent_name=independent.reward_model if independent else None,
            independent_held_out_accuracy=independent.accuracy.value if independent else None,
            independent_pairs=independent.accuracy.n if independent else None,
        ),
        control=_control(findings),
        labelled_rewards=_labelled(findings),
        units=main.units,
        units_of=_units_of(findings),
        quality=config.quality,
        examples=_examples(findings),
        warnings=_warnings(findings),
        training=training_lines(findings.report.entrants),
        judge=findings.judged.name if findings.judged else None,
    )
    report = findings.report.model_copy(update={"recipe": section})
    section.checks = checks(flat(report))
    return report


def without_rewards(report: EvaluationReport, entrants: int) -> EvaluationReport:
    """The report for a stage whose judge decides alone: the paper claims nothing about judges."""
    section = RecipeSection(
        entrants=[entrant.name for entrant in report.entrants[:entrants]],
        reward_model=RewardModelSummary(held_out_accuracy=None, pairs=0),
        units="raw",
        units_of=None,
        training=training_lines(report.entrants),
    )
    return report.model_copy(update={"recipe": section})


def _control(findings: Findings) -> Control | None:
    """The first model, at one guidance, with several scores, or values of one attribute, in rising order of what was
    requested."""
    for first in findings.entries:
        alike = [
            entrant
            for entrant in findings.entries
            if (entrant.model, entrant.guidance) == (first.model, first.guidance)
        ]
        scored = [entrant for entrant in alike if entrant.score is not None and entrant.best_of is None]
        along = varied(entrant.score for entrant in scored if entrant.score is not None)
        if along is not None:
            means = [score_of(findings.main.comparison, entrant.name) for entrant in scored]
            achieved = [mean.value if mean is not None and mean.value is not None else 0.0 for mean in means]
            curve = sorted(zip(along, achieved, strict=True))
            requested, achieved = [wanted for wanted, _ in curve], [reached for _, reached in curve]
            return Control(requested=requested, achieved=achieved, spearman=spearman(requested, achieved))
    return None


def _labelled(findings: Findings) -> LabelledRewards | None:
    labelled = findings.summary.labelled
    if labelled is None:
        return None
    p20, p50, p80 = map(findings.in_units, (labelled.p20, labelled.p50, labelled.p80))
    return LabelledRewards(p20=p20, p50=p50, p80=p80, n=labelled.n)


def _units_of(findings: Findings) -> str | None:
    if findings.facts.normaliser is None:
        return None
    of = findings.summary.normalised_by
    return of if of is not None and of.startswith("the held-out pairs of ") else "the labelled data"


def _examples(findings: Findings) -> list[Example]:
    """The first answer of every entrant with its reward."""
    facts = findings.facts
    first = facts.sample == 0
    columns = {entrant.id: column for column, entrant in enumerate(findings.entries)}
    places = zip(facts.row[first].tolist(), facts.entrant[first].tolist(), strict=True)
    rewards = dict(zip(places, facts.values[first].tolist(), strict=True))
    return [
        Example(
            prompt=prompt,
            answers=[
                {
                    "name": entrant.name,
                    "entrant": entrant.model or entrant.name,
                    "best_of": entrant.best_of,
                    "method": entrant.method or BASE,
                    "score": None if entrant.score is None else entrant.score.plain(),
                    "text": texts[entrant.id],
                    "reward": findings.in_units(rewards[row, columns[entrant.id]]),
                }
                for entrant in findings.entries
            ],
        )
        for row, (prompt, texts) in findings.shown.items()
    ]


def _warnings(findings: Findings) -> list[str]:
    main, labelled = findings.main, findings.summary.labelled
    warnings = []
    if findings.report.prompts < FEW_PROMPTS:
        warnings.append(f"Only {findings.report.prompts} held-out prompts: the intervals are wide and may not hold.")
    if findings.independent is None and main.trained:
        warnings.append(
            f"No independent reward model: the win rates are by {main.reward_model}, from which "
            f"{listed(main.trained)} learned, or which chose their answers."
        )
    if findings.report.held_out_changes:
        warnings.append(f"Held-out rows were changed by people: {in_words(findings.report.held_out_changes)}.")
    silence = findings.judged.silence(*range(findings.entrants)) if findings.judged is not None else None
    if silence is not None:
        warnings.append(f"{silence[0].upper()}{silence[1:]}: its win rates are left out.")
    if findings.facts.normaliser is None:
        warnings.append(
            "Rewards are raw: without labelled data and held-out pairs there is nothing to bring them to z units."
        )
    elif labelled:
        warnings += _beyond(findings, findings.in_units(labelled.p0_1), findings.in_units(labelled.p99_9))
    for entrant in findings.entries:
        info = findings.models.get(entrant.id)
        form = info.condition if info else None
        if form is not None and entrant.score is not None and form.rounds(entrant.score):
            warnings.append(f"{entrant.name}: score {entrant.score:g} is written as {form.text(entrant.score)}.")
    cut = [row for row in findings.report.entrants[: findings.entrants] if (row.truncated or 0.0) > MANY_CUT]
    if cut:
        warnings.append(
            f"The token limit cut answers of {listed([f'{row.name} ({row.truncated:.0%})' for row in cut])}."
        )
    if findings.summed:
        warnings.append(
            f"The labelled rows' rewards are those of {findings.graded_by}, a sum of {findings.summed} rewards; the "
            "reward model that judges here gave one of them. The evaluation's report compares by each, and by the sum."
        )
    elif findings.graded_by is not None and labelled is not None:
        warnings.append(
            f"The labelled rows' rewards are those of {findings.graded_by}, not of the reward model that judges here: "
            f"z units and percentiles are by its own rewards of {labelled.n} labelled rows."
        )
    return warnings


def _beyond(findings: Findings, low: float, high: float) -> list[str]:
    """Requested z-scores outside the labelled data. A quantile scale's scores are all inside it, and one of a sum of
    rewards is of other units than those of the model that judges."""
    warnings = []
    for entrant in findings.entries:
        info = findings.models.get(entrant.id)
        scale = info.score_scale if info else None
        score = entrant.score.score if entrant.score is not None else None
        if scale is None or scale.kind != "zscore" or scale.normaliser.parts or score is None:
            continue
        if score > high or score < low:
            end = f"99.9th percentile ({high:.2f})" if score > high else f"0.1th percentile ({low:.2f})"
            warnings.append(f"{entrant.name}: score {score:g} is beyond the labelled rewards' {end}.")
    return warnings
