"""The combine stage: several rewards of the same answers become one, by weight.

R = sum_k w_k (R_k - mean_k) / sd_k, with mean and sd over the whole k-th labelled dataset: a reward counts by its
weight alone, however large its numbers are. It is a function of its inputs, so an attempt that was killed starts over
and writes the same bytes.
"""

from __future__ import annotations

import json
from array import array

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.errors import BadInput
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.report.combination import CombinationResult, CombinedReward
from steerboard_contracts.run_kinds.combine import CombineConfig
from steerboard_contracts.stage.events import Succeeded
from steerboard_contracts.stage.outputs import CombinationOutput, RewardsOutput
from steerboard_statistics.correlation import correlations
from steerboard_statistics.rewards import histograms
from steerboard_workers.stages.rows.same_rows import answer_inputs, finite_reward, same_rows, weights_of
from steerboard_workers.stages.runtime import Stage

Floats = NDArray[np.float64]

SUM = "sum"


def run(stage: Stage) -> Succeeded:
    config = stage.spec.config
    assert isinstance(config, CombineConfig)
    with stage.phases.measure("data"):
        return _combined(stage, config)


def _combined(stage: Stage, config: CombineConfig) -> Succeeded:
    datasets = answer_inputs(stage)
    if len(datasets) < 2:
        raise BadInput(
            f"stage {stage.spec.name} is given one dataset; several rewards can be combined, not one",
            code="missing_input",
            hint="Give two labelled datasets over the same rows, such as `data: [helpful, harmless]`.",
        )
    weights = weights_of(config.weights, datasets)
    names = [dataset.name for dataset in datasets.values()]
    read = [array("d") for _ in datasets]
    for place, rows in enumerate(same_rows(stage, datasets)):
        for values, row, name in zip(read, rows, names, strict=True):
            values.append(finite_reward(row, place, name))
    rewards = [np.frombuffer(values) for values in read]
    normalisers = [
        dataset.normaliser or Normaliser.fit(values.tolist(), dataset.name)
        for dataset, values in zip(datasets.values(), rewards, strict=True)
    ]
    units = [(values - by.mean) / by.sd for values, by in zip(rewards, normalisers, strict=True)]
    total = np.zeros(len(units[0]))
    for weight, z in zip(weights, units, strict=True):
        total += weight * z
    # Rewards that cancel out leave nothing to learn from: refused here, with the reason.
    of_sum = Normaliser.fit(total.tolist(), stage.spec.name)
    result = CombinationResult(
        rows=len(total),
        mean=of_sum.mean,
        sd=of_sum.sd,
        rewards=_rewards(names, normalisers, weights, units, total),
        correlations=correlations([*_titles(normalisers, names), SUM], [*rewards, total]),
        histogram=histograms({SUM: total})[SUM],
    )
    with stage.output_file("rewards.jsonl") as path, path.open("w") as file:
        for place, value in enumerate(total):
            file.write(json.dumps({"row": place, "value": float(value)}) + "\n")
    with stage.output_file("combination.json") as path:
        path.write_text(result.model_dump_json(), encoding="utf-8")
    return Succeeded(
        outputs=[
            RewardsOutput(path=stage.output_path("rewards.jsonl"), rows=len(total)),
            CombinationOutput(path=stage.output_path("combination.json")),
        ],
        summary={"rows": len(total), "rewards": len(datasets), "reward_mean": of_sum.mean, "reward_sd": of_sum.sd},
    )


def _titles(normalisers: list[Normaliser], datasets: list[str]) -> list[str]:
    """Who gave each reward; the dataset as well where that does not tell them apart."""
    sources = [normaliser.reward_source for normaliser in normalisers]
    return [
        source if sources.count(source) == 1 and source != SUM else f"{source} ({dataset})"
        for source, dataset in zip(sources, datasets, strict=True)
    ]


def _rewards(
    names: list[str], normalisers: list[Normaliser], weights: list[float], units: list[Floats], total: Floats
) -> list[CombinedReward]:
    away = total - total.mean()
    bins = histograms({str(place): z for place, z in enumerate(units)})
    return [
        CombinedReward(
            **normaliser.part(weight).model_dump(),
            dataset=name,
            share=float(weight * (z @ away) / (away @ away)),
            histogram=bins[str(place)],
        )
        for place, (name, normaliser, weight, z) in enumerate(zip(names, normalisers, weights, units, strict=True))
    ]
