"""From answers and judgements to the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steerboard_contracts.configs import EvaluateConfig
from steerboard_contracts.errors import BadInput
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.report import Control, Example, LabelledRewards, MethodRow, Report, RewardModelSummary
from steerboard_statistics.bootstrap import Resamples
from steerboard_statistics.correlation import spearman
from steerboard_statistics.diversity import distinct_n
from steerboard_statistics.paired import win_rate
from steerboard_workers.stages.evaluation.answers import Entry, Prompt
from steerboard_workers.stages.evaluation.judging import Judgement
from steerboard_workers.synthetic import quality

FEW_PROMPTS = 30
MANY_CUT = 0.1


@dataclass(frozen=True)
class Findings:
    """All that the report is made of. `labelled` are raw rewards by the main model, in z through `normaliser`."""

    prompts: list[Prompt]
    entries: list[Entry]
    main: Judgement
    independent: Judgement | None
    normaliser: Normaliser
    labelled: list[float] | None


def report(config: EvaluateConfig, findings: Findings) -> Report:
    bootstrap = Resamples(len(findings.prompts), config.bootstrap, config.seed)
    z_rewards = [[findings.normaliser.z(r) for r in rewards] for rewards in findings.main.rewards]
    sft = next((i for i, entry in enumerate(findings.entries) if entry.method == "sft"), None)
    rows = [_row(config, findings, bootstrap, i, z_rewards, sft) for i in range(len(findings.entries))]
    main, independent = findings.main, findings.independent
    labelled = [findings.normaliser.z(r) for r in findings.labelled] if findings.labelled else None
    return Report(
        methods=rows,
        reward_model=RewardModelSummary(
            held_out_accuracy=main.accuracy,
            pairs=main.pairs,
            independent_held_out_accuracy=independent.accuracy if independent else None,
            independent_pairs=independent.pairs if independent else None,
        ),
        control=_control(rows),
        labelled_rewards=_labelled(labelled),
        prompts=len(findings.prompts),
        synthetic=config.quality == "synthetic",
        examples=_examples(config, findings, z_rewards),
        warnings=_warnings(findings, rows, labelled),
    )


def _row(
    config: EvaluateConfig,
    findings: Findings,
    bootstrap: Resamples,
    index: int,
    z_rewards: list[list[float]],
    sft: int | None,
) -> MethodRow:
    entry = findings.entries[index]
    reward = bootstrap.interval(z_rewards[index])
    known = _quality(config, findings.prompts, entry)
    rated = bootstrap.interval(known) if known else None
    independent = findings.independent
    own = independent.rewards[index] if independent else None
    unit = independent.normaliser if independent else None
    compare = sft is not None and entry.method != "sft"
    return MethodRow(
        method=entry.method,
        entrant=entry.entrant,
        score=entry.score,
        n=len(entry.texts),
        reward_mean=reward.mean,
        reward_low=reward.low,
        reward_high=reward.high,
        independent_reward_mean=_mean([unit.z(r) if unit else r for r in own]) if own else None,
        length_mean=_mean(entry.tokens),
        truncated=_mean([not finished for finished in entry.finished]),
        distinct_1=distinct_n(entry.texts, 1),
        distinct_2=distinct_n(entry.texts, 2),
        win_rate_vs_sft=win_rate(z_rewards[index], z_rewards[sft]) if compare and sft is not None else None,
        independent_win_rate_vs_sft=(
            win_rate(own, independent.rewards[sft]) if compare and sft is not None and own and independent else None
        ),
        quality_mean=rated.mean if rated else None,
        quality_low=rated.low if rated else None,
        quality_high=rated.high if rated else None,
        device_seconds=entry.device_seconds,
    )


def _quality(config: EvaluateConfig, prompts: Sequence[Prompt], entry: Entry) -> list[float] | None:
    if config.quality is None:
        return None
    try:
        return [quality(p[-1]["content"], text) for p, text in zip(prompts, entry.texts, strict=True)]
    except ValueError as error:
        raise BadInput(
            f"quality: synthetic was asked for, but {error}",
            code="not_synthetic",
            hint="Leave `quality` out when the prompts are not the synthetic demo data's.",
        ) from error


def _control(rows: list[MethodRow]) -> Control | None:
    """The first entrant with several scores, in rising order of the requested score."""
    for first in rows:
        curve = sorted((r.score, r.reward_mean) for r in rows if r.entrant == first.entrant and r.score is not None)
        if len(curve) > 1:
            requested, achieved = [c[0] for c in curve], [c[1] for c in curve]
            return Control(requested=requested, achieved=achieved, spearman=spearman(requested, achieved))
    return None


def _labelled(z: list[float] | None) -> LabelledRewards | None:
    if not z:
        return None
    p20, p50, p80 = _percentiles(z, [20, 50, 80])
    return LabelledRewards(p20=p20, p50=p50, p80=p80, n=len(z))


def _examples(config: EvaluateConfig, findings: Findings, z_rewards: list[list[float]]) -> list[Example]:
    return [
        Example(
            prompt=findings.prompts[row][-1]["content"],
            answers=[
                {
                    "entrant": entry.entrant,
                    "method": entry.method,
                    "score": entry.score,
                    "text": entry.texts[row],
                    "reward": z[row],
                }
                for entry, z in zip(findings.entries, z_rewards, strict=True)
            ],
        )
        for row in range(min(config.examples, len(findings.prompts)))
    ]


def _warnings(findings: Findings, rows: list[MethodRow], labelled: list[float] | None) -> list[str]:
    warnings = []
    if len(findings.prompts) < FEW_PROMPTS:
        warnings.append(f"Only {len(findings.prompts)} held-out prompts: the intervals are wide and may not hold.")
    if findings.independent is None:
        warnings.append(
            "No independent reward model: the win rates come from the model that labelled the training data."
        )
    if labelled:
        warnings += _beyond(findings, labelled)
    for entry in findings.entries:
        written = entry.info.score_format
        if written is not None and entry.score is not None and abs(written.value(entry.score) - entry.score) > 1e-9:
            warnings.append(f"{entry.entrant}: score {entry.score:g} is written as {written.text(entry.score)}.")
    for row in rows:
        if row.truncated > MANY_CUT:
            at = "" if row.score is None else f" at {row.score:g}"
            warnings.append(f"{row.entrant}{at}: {row.truncated:.0%} of the answers were cut at the token limit.")
    return warnings


def _beyond(findings: Findings, labelled: list[float]) -> list[str]:
    """Requested z-scores outside the labelled data. A quantile scale's scores all lie inside it."""
    low, high = _percentiles(labelled, [0.1, 99.9])
    warnings = []
    for entry in findings.entries:
        scale = entry.info.score_scale
        if scale is None or scale.kind != "zscore" or entry.score is None:
            continue
        if entry.score > high or entry.score < low:
            end = f"99.9th percentile ({high:.2f})" if entry.score > high else f"0.1th percentile ({low:.2f})"
            warnings.append(f"{entry.entrant}: score {entry.score:g} lies beyond the labelled rewards' {end}.")
    return warnings


def _percentiles(values: Sequence[float], at: Sequence[float]) -> list[float]:
    return [float(p) for p in np.percentile(np.asarray(values, dtype=np.float64), list(at))]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
