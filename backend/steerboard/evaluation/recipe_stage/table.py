"""From answers and rewards to the paper's table, the control curve and the costs."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from steerboard.evaluation.recipe_stage.judge import Judged
from steerboard_contracts.conditions.condition import Condition, varied
from steerboard_contracts.configs.evaluate import EvaluateConfig
from steerboard_contracts.decoding import guided_suffix
from steerboard_contracts.held_out_changes import HeldOutChange, in_words
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.report.baseline import baseline_place, is_usual_baseline
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.pipeline import (
    Control,
    Example,
    LabelledRewards,
    MethodRow,
    Report,
    RewardModelSummary,
)
from steerboard_contracts.report.sections.costs import EntrantCost
from steerboard_contracts.report.sections.fluency import FluencyRow
from steerboard_contracts.stage.outputs import RewardSummary
from steerboard_contracts.wording import listed
from steerboard_statistics.bootstrap import Resamples
from steerboard_statistics.correlation import spearman
from steerboard_statistics.paired import win_rate
from steerboard_statistics.texts.diversity import distinct_n

Prompt = list[dict[str, str]]

FEW_PROMPTS = 30
MANY_CUT = 0.1


@dataclass(frozen=True)
class Entry:
    """One model at one requested score, or its best of several, with its answers in the order of the prompts, the first
    ones of several `samples`."""

    id: uuid.UUID
    name: str
    model: str
    method: str
    score: Condition | None
    best_of: int | None
    info: ModelInfo | None
    device_seconds: float
    cost: EntrantCost | None
    texts: list[str]
    tokens: list[int]
    finished: list[bool]
    log_prob_seconds: tuple[float, float] = (0.0, 0.0)
    chosen_by: str | None = None
    samples: int = 1
    guidance: float = 1.0
    fluency: FluencyRow | None = None


@dataclass(frozen=True)
class Scores:
    """One reward model's view. `rewards[entry][prompt]` are raw."""

    content_hash: str
    rewards: list[list[float]]
    normaliser: Normaliser | None
    summary: RewardSummary
    name: str = ""

    @property
    def accuracy(self) -> float | None:
        return self.summary.correct / self.summary.pairs if self.summary.pairs else None

    def in_units(self, rewards: Sequence[float]) -> list[float]:
        """z where the model has a normaliser, else as they are."""
        return [self.normaliser.z(r) for r in rewards] if self.normaliser else list(rewards)


@dataclass(frozen=True)
class Findings:
    """All that the table is made of. `quality[entry][prompt]` is what a program knows. `graded_by`: who gave the
    labelled rows their rewards, where that was not `main`; `summed`: of how many rewards, `main`'s among them, that is
    the sum. `taught`: entrants that learned from `main`, or whose answers it chose."""

    prompts: list[Prompt]
    entries: list[Entry]
    main: Scores
    independent: Scores | None
    quality: list[list[float]] | None
    graded_by: str | None = None
    summed: int = 0
    held_out_changes: list[HeldOutChange] = field(default_factory=list)
    taught: Sequence[str] = ()
    judged: Judged | None = None


def report(config: EvaluateConfig, findings: Findings) -> Report:
    """Raises nothing of its own: everything that can be wrong was refused when the stage began."""
    bootstrap = Resamples(len(findings.prompts), config.bootstrap, config.seed)
    rewards = [findings.main.in_units(rewards) for rewards in findings.main.rewards]
    baseline = baseline_place(findings.entries)
    rows = [_row(findings, bootstrap, i, rewards, baseline) for i in range(len(findings.entries))]
    main, independent = findings.main, findings.independent
    return Report(
        methods=rows,
        reward_model=RewardModelSummary(
            name=main.name,
            held_out_accuracy=main.accuracy,
            pairs=main.summary.pairs,
            independent_name=independent.name if independent else None,
            independent_held_out_accuracy=independent.accuracy if independent else None,
            independent_pairs=independent.summary.pairs if independent else None,
        ),
        control=_control(rows),
        labelled_rewards=_labelled(main),
        prompts=len(findings.prompts),
        units="z" if main.normaliser else "raw",
        units_of=_units_of(main),
        synthetic=config.quality == "synthetic",
        quality=config.quality,
        examples=_examples(config, findings, rewards),
        judge=findings.judged.name if findings.judged else None,
        warnings=_warnings(findings, rows),
    )


def _row(
    findings: Findings, bootstrap: Resamples, index: int, rewards: list[list[float]], baseline: int | None
) -> MethodRow:
    entry = findings.entries[index]
    reward = bootstrap.interval(rewards[index])
    rated = bootstrap.interval(findings.quality[index]) if findings.quality else None
    independent = findings.independent
    own = independent.rewards[index] if independent else None
    against = None if index == baseline or is_usual_baseline(entry) else baseline
    return MethodRow(
        method=entry.method,
        name=entry.name,
        entrant=entry.model,
        variant=_variant(findings, entry),
        score=entry.score,
        guidance=entry.guidance,
        best_of=entry.best_of,
        chosen_by=entry.chosen_by,
        n=len(entry.texts),
        reward_mean=reward.mean,
        reward_low=reward.low,
        reward_high=reward.high,
        independent_reward_mean=_mean(independent.in_units(own)) if independent and own else None,
        length_mean=_mean(entry.tokens),
        truncated=_mean([not finished for finished in entry.finished]),
        distinct_1=distinct_n(entry.texts, 1),
        distinct_2=distinct_n(entry.texts, 2),
        perplexity=entry.fluency.perplexity.value if entry.fluency else None,
        empty=entry.fluency.empty if entry.fluency else None,
        repeated=entry.fluency.repeated if entry.fluency else None,
        win_rate_vs_baseline=None if against is None else win_rate(rewards[index], rewards[against]),
        independent_win_rate_vs_baseline=(
            win_rate(own, independent.rewards[against]) if against is not None and own and independent else None
        ),
        judge_win_rate_vs_baseline=_by_judge(findings, index, against),
        quality_mean=rated.mean if rated else None,
        quality_low=rated.low if rated else None,
        quality_high=rated.high if rated else None,
        quality_gain=None if against is None else _quality_gain(findings, bootstrap, index, against),
        device_seconds=entry.device_seconds,
        own_device_seconds=entry.cost.own_device_seconds if entry.cost else None,
        total_device_seconds=entry.cost.ledger.device_seconds if entry.cost and entry.cost.runs else None,
        shared_runs=entry.cost.shared if entry.cost else [],
        log_prob_seconds=entry.log_prob_seconds[0],
        log_prob_seconds_shared=entry.log_prob_seconds[1],
    )


def _quality_gain(findings: Findings, bootstrap: Resamples, index: int, against: int) -> Estimate | None:
    if findings.quality is None:
        return None
    pairs = zip(findings.quality[index], findings.quality[against], strict=True)
    found = bootstrap.interval([mine - theirs for mine, theirs in pairs])
    return Estimate(value=found.mean, low=found.low, high=found.high, n=len(findings.prompts))


def _variant(findings: Findings, entry: Entry) -> str | None:
    """How many samples, the guidance, or the entrant's name without its score where another model is of the same
    method."""
    if entry.samples > 1:
        return f"{entry.samples} samples"
    guidance = None if entry.guidance == 1 else f"guidance {entry.guidance:g}"
    if all(one.model == entry.model for one in findings.entries if one.method == entry.method):
        return guidance
    name = entry.name if entry.best_of is None else entry.name.removesuffix(f"_best_of_{entry.best_of}")
    name = name if guidance is None else name.removesuffix(guided_suffix(entry.guidance))
    name = name if entry.score is None else name.removesuffix(f"_{entry.score.slug}")
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


def _by_judge(findings: Findings, index: int, against: int | None) -> float | None:
    judged = findings.judged
    return judged.win_rate(index, against) if judged is not None and against is not None else None


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


def _labelled(main: Scores) -> LabelledRewards | None:
    found = main.summary.labelled
    if found is None:
        return None
    p20, p50, p80 = main.in_units([found.p20, found.p50, found.p80])
    return LabelledRewards(p20=p20, p50=p50, p80=p80, n=found.n)


def _units_of(main: Scores) -> str | None:
    if main.normaliser is None:
        return None
    of = main.summary.normalised_by
    return of if of is not None and of.startswith("the held-out pairs of ") else "the labelled data"


def _examples(config: EvaluateConfig, findings: Findings, rewards: list[list[float]]) -> list[Example]:
    return [
        Example(
            prompt=findings.prompts[row][-1]["content"],
            answers=[
                {
                    "name": entry.name,
                    "entrant": entry.model,
                    "best_of": entry.best_of,
                    "method": entry.method,
                    "score": None if entry.score is None else entry.score.plain(),
                    "text": entry.texts[row],
                    "reward": of[row],
                }
                for entry, of in zip(findings.entries, rewards, strict=True)
            ],
        )
        for row in range(min(config.examples, len(findings.prompts)))
    ]


def _warnings(findings: Findings, rows: list[MethodRow]) -> list[str]:
    main = findings.main
    warnings = []
    if len(findings.prompts) < FEW_PROMPTS:
        warnings.append(f"Only {len(findings.prompts)} held-out prompts: the intervals are wide and may not hold.")
    if findings.independent is None and findings.taught:
        warnings.append(
            f"No independent reward model: the win rates are by {main.name}, from which {listed(findings.taught)} "
            "learned, or which chose their answers."
        )
    if findings.held_out_changes:
        warnings.append(f"Held-out rows were changed by people: {in_words(findings.held_out_changes)}.")
    silence = findings.judged.silence(*range(len(rows))) if findings.judged is not None else None
    if silence is not None:
        warnings.append(f"{silence[0].upper()}{silence[1:]}: its win rates are left out.")
    if main.normaliser is None:
        warnings.append(
            "Rewards are raw: without labelled data and held-out pairs there is nothing to bring them to z units."
        )
    if main.summary.labelled and main.normaliser:
        warnings += _beyond(findings, *main.in_units([main.summary.labelled.p0_1, main.summary.labelled.p99_9]))
    for entry in findings.entries:
        form = entry.info.condition if entry.info else None
        if form is not None and entry.score is not None and form.rounds(entry.score):
            warnings.append(f"{entry.name}: score {entry.score:g} is written as {form.text(entry.score)}.")
    for row in rows:
        if row.truncated > MANY_CUT:
            warnings.append(f"{row.name}: {row.truncated:.0%} of the answers were cut at the token limit.")
    if findings.summed:
        warnings.append(
            f"The labelled rows' rewards are those of {findings.graded_by}, a sum of {findings.summed} rewards; the "
            "reward model that judges here gave one of them. The evaluation's report compares by each, and by the sum."
        )
    elif findings.graded_by is not None and main.summary.labelled is not None:
        warnings.append(
            f"The labelled rows' rewards are those of {findings.graded_by}, not of the reward model that judges here: "
            f"z units and percentiles are by its own rewards of {main.summary.labelled.n} labelled rows."
        )
    return warnings


def _beyond(findings: Findings, low: float, high: float) -> list[str]:
    """Requested z-scores outside the labelled data. A quantile scale's scores are all inside it, and one of a sum of
    rewards is of other units than those of the model that judges."""
    warnings = []
    for entry in findings.entries:
        scale = entry.info.score_scale if entry.info else None
        score = entry.score.score if entry.score is not None else None
        if scale is None or scale.kind != "zscore" or scale.normaliser.parts or score is None:
            continue
        if score > high or score < low:
            end = f"99.9th percentile ({high:.2f})" if score > high else f"0.1th percentile ({low:.2f})"
            warnings.append(f"{entry.name}: score {score:g} is beyond the labelled rewards' {end}.")
    return warnings


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
