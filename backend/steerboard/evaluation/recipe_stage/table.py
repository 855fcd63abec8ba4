"""The paper's table, the control curve and the examples of a recipe's stage, from the report of its evaluation: a
figure that both have is the same figure."""

from __future__ import annotations

from steerboard.evaluation.recipe_stage.findings import Findings
from steerboard.evaluation.report.data import Who
from steerboard.evaluation.report.sources import pair_of, score_of
from steerboard_contracts.conditions.condition import varied
from steerboard_contracts.configs.evaluate import EvaluateConfig
from steerboard_contracts.decoding import guided_suffix
from steerboard_contracts.held_out_changes import in_words
from steerboard_contracts.report.baseline import BASE, baseline_place
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.pipeline import (
    Control,
    Example,
    LabelledRewards,
    MethodRow,
    Report,
    RewardModelSummary,
)
from steerboard_contracts.report.sections.comparison import PairRow
from steerboard_contracts.report.sections.rewards import RewardReport
from steerboard_contracts.wording import listed
from steerboard_statistics.correlation import spearman

FEW_PROMPTS = 30
MANY_CUT = 0.1


def report(config: EvaluateConfig, findings: Findings) -> Report:
    """Raises nothing of its own: everything that can be wrong was refused when the stage began."""
    place = baseline_place(findings.entries)
    baseline = None if place is None else findings.entries[place].name
    rows = [_row(findings, who, baseline) for who in findings.entries]
    main, independent = findings.main, findings.independent
    return Report(
        methods=rows,
        reward_model=RewardModelSummary(
            name=main.reward_model,
            held_out_accuracy=main.accuracy.value,
            pairs=main.accuracy.n,
            independent_name=independent.reward_model if independent else None,
            independent_held_out_accuracy=independent.accuracy.value if independent else None,
            independent_pairs=independent.accuracy.n if independent else None,
        ),
        control=_control(rows),
        labelled_rewards=_labelled(findings),
        prompts=findings.report.prompts,
        units=main.units,
        units_of=_units_of(findings),
        synthetic=config.quality == "synthetic",
        quality=config.quality,
        examples=_examples(findings),
        judge=findings.judged.name if findings.judged else None,
        warnings=_warnings(findings, rows),
    )


def _row(findings: Findings, who: Who, baseline: str | None) -> MethodRow:
    found, training = findings.report, findings.of(who)
    answers = next(one for one in found.entrants if one.name == who.name)
    cost = next((one for one in found.costs if one.entrant == who.name), None)
    fluency = next((one for one in found.fluency.entrants if one.entrant == who.name), None) if found.fluency else None
    reward, quality = _mean(findings.main, who), _mean(findings.quality, who)
    independent = _mean(findings.independent, who)
    return MethodRow(
        method=who.method or BASE,
        name=who.name,
        entrant=who.model or who.name,
        variant=_variant(findings, who),
        score=who.score,
        guidance=who.guidance,
        best_of=who.best_of,
        chosen_by=who.chosen_by,
        n=found.prompts,
        reward_mean=_number(reward.value),
        reward_low=reward.low,
        reward_high=reward.high,
        independent_reward_mean=independent.value,
        length_mean=_number(fluency.tokens if fluency else None),
        truncated=_number(answers.truncated),
        distinct_1=_number(fluency.distinct_1 if fluency else None),
        distinct_2=_number(fluency.distinct_2 if fluency else None),
        perplexity=fluency.perplexity.value if fluency else None,
        empty=fluency.empty if fluency else None,
        repeated=fluency.repeated if fluency else None,
        win_rate_vs_baseline=_win_rate(findings.main, who, baseline),
        independent_win_rate_vs_baseline=_win_rate(findings.independent, who, baseline),
        judge_win_rate_vs_baseline=_by_judge(findings, who, baseline),
        quality_mean=quality.value,
        quality_low=quality.low,
        quality_high=quality.high,
        quality_gain=pair.difference if (pair := _pair(findings.quality, who, baseline)) else None,
        device_seconds=training.device_seconds,
        own_device_seconds=cost.own_device_seconds if cost else None,
        total_device_seconds=cost.ledger.device_seconds if cost and cost.runs else None,
        shared_runs=cost.shared if cost else [],
        log_prob_seconds=training.log_prob_seconds[0],
        log_prob_seconds_shared=training.log_prob_seconds[1],
    )


def _variant(findings: Findings, who: Who) -> str | None:
    """How many samples, the guidance, or the entrant's name without its score where another model is of the same
    method."""
    if who.samples > 1:
        return f"{who.samples} samples"
    weight = who.guidance
    guidance = None if weight == 1 else f"guidance {weight:g}"
    if all(one.model == who.model for one in findings.entries if one.method == who.method):
        return guidance
    name = who.name if who.best_of is None else who.name.removesuffix(f"_best_of_{who.best_of}")
    name = name if guidance is None else name.removesuffix(guided_suffix(weight))
    name = name if who.score is None else name.removesuffix(f"_{who.score.slug}")
    return name if guidance is None else f"{name}, {guidance}"


def without_rewards(prompts: int) -> Report:
    """The report of a stage whose judge decides alone: it has no table, since that is of rewards."""
    return Report(
        methods=[],
        reward_model=RewardModelSummary(held_out_accuracy=None, pairs=0),
        control=None,
        labelled_rewards=None,
        prompts=prompts,
        units="raw",
        units_of=None,
    )


def _mean(source: RewardReport | None, who: Who) -> Estimate:
    found = score_of(source.comparison, who.name) if source is not None else None
    return found or Estimate(value=None, n=0)


def _pair(source: RewardReport | None, who: Who, baseline: str | None) -> PairRow | None:
    """None of the baseline with itself."""
    return pair_of(source.comparison, who.name, baseline) if source is not None and baseline is not None else None


def _win_rate(source: RewardReport | None, who: Who, baseline: str | None) -> float | None:
    pair = _pair(source, who, baseline)
    return pair.win_rate.value if pair is not None else None


def _by_judge(findings: Findings, who: Who, baseline: str | None) -> float | None:
    judged = findings.judged
    judge = next((one for one in findings.report.judges if judged is not None and one.judge == judged.name), None)
    if judge is None or not judge.valid or baseline is None or judge.invalid_entrants.keys() & {who.name, baseline}:
        return None
    pair = pair_of(judge.comparison, who.name, baseline)
    return pair.win_rate.value if pair is not None else None


def _control(rows: list[MethodRow]) -> Control | None:
    """The first model, at one guidance, with several scores, or values of one attribute, in rising order of what was
    requested."""
    for first in rows:
        alike = [one for one in rows if (one.entrant, one.guidance) == (first.entrant, first.guidance)]
        mine = [row for row in alike if row.score is not None and row.best_of is None]
        along = varied(row.score for row in mine if row.score is not None)
        if along is not None:
            curve = sorted((asked, row.reward_mean) for asked, row in zip(along, mine, strict=True))
            requested, achieved = [c[0] for c in curve], [c[1] for c in curve]
            return Control(requested=requested, achieved=achieved, spearman=spearman(requested, achieved))
    return None


def _labelled(findings: Findings) -> LabelledRewards | None:
    found = findings.summary.labelled
    if found is None:
        return None
    p20, p50, p80 = map(findings.in_units, (found.p20, found.p50, found.p80))
    return LabelledRewards(p20=p20, p50=p50, p80=p80, n=found.n)


def _units_of(findings: Findings) -> str | None:
    if findings.facts.normaliser is None:
        return None
    of = findings.summary.normalised_by
    return of if of is not None and of.startswith("the held-out pairs of ") else "the labelled data"


def _examples(findings: Findings) -> list[Example]:
    """The first answer of every entrant with its reward."""
    facts = findings.facts
    first = facts.sample == 0
    columns = {who.id: column for column, who in enumerate(findings.entries)}
    places = zip(facts.row[first].tolist(), facts.entrant[first].tolist(), strict=True)
    rewards = dict(zip(places, facts.values[first].tolist(), strict=True))
    return [
        Example(
            prompt=prompt,
            answers=[
                {
                    "name": who.name,
                    "entrant": who.model or who.name,
                    "best_of": who.best_of,
                    "method": who.method or BASE,
                    "score": None if who.score is None else who.score.plain(),
                    "text": texts[who.id],
                    "reward": findings.in_units(rewards[row, columns[who.id]]),
                }
                for who in findings.entries
            ],
        )
        for row, (prompt, texts) in findings.shown.items()
    ]


def _warnings(findings: Findings, rows: list[MethodRow]) -> list[str]:
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
    silence = findings.judged.silence(*range(len(rows))) if findings.judged is not None else None
    if silence is not None:
        warnings.append(f"{silence[0].upper()}{silence[1:]}: its win rates are left out.")
    if findings.facts.normaliser is None:
        warnings.append(
            "Rewards are raw: without labelled data and held-out pairs there is nothing to bring them to z units."
        )
    elif labelled:
        warnings += _beyond(findings, findings.in_units(labelled.p0_1), findings.in_units(labelled.p99_9))
    for who in findings.entries:
        info = findings.of(who).info
        form = info.condition if info else None
        if form is not None and who.score is not None and form.rounds(who.score):
            warnings.append(f"{who.name}: score {who.score:g} is written as {form.text(who.score)}.")
    for row in rows:
        if row.truncated > MANY_CUT:
            warnings.append(f"{row.name}: {row.truncated:.0%} of the answers were cut at the token limit.")
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
    for who in findings.entries:
        info = findings.of(who).info
        scale = info.score_scale if info else None
        score = who.score.score if who.score is not None else None
        if scale is None or scale.kind != "zscore" or scale.normaliser.parts or score is None:
            continue
        if score > high or score < low:
            end = f"99.9th percentile ({high:.2f})" if score > high else f"0.1th percentile ({low:.2f})"
            warnings.append(f"{who.name}: score {score:g} is beyond the labelled rewards' {end}.")
    return warnings


def _number(value: float | None) -> float:
    return 0.0 if value is None else value
