"""The grade stage: a program that knows how good an answer is gives every row of a dataset a reward.

It is a function of its inputs, so an attempt that was killed starts over and writes the same bytes.
"""

from __future__ import annotations

import json

import numpy as np

from steerboard_contracts.errors import EmptySelection
from steerboard_contracts.run_kinds.grade import GradeConfig
from steerboard_contracts.stage.events import Succeeded
from steerboard_contracts.stage.outputs import RewardsOutput
from steerboard_workers.stages.rows.given_responses import scorable, summarised
from steerboard_workers.stages.rows.known_quality import known_quality
from steerboard_workers.stages.runtime import Stage


def run(stage: Stage) -> Succeeded:
    config = stage.spec.config
    assert isinstance(config, GradeConfig)
    dataset = stage.dataset("data")
    if dataset.rows == 0:
        raise EmptySelection(f"dataset {dataset.name} has no rows to grade")
    program, noise = known_quality(config.quality), np.random.default_rng(config.seed)
    values: list[float] = []
    with stage.phases.measure("data"), stage.output_file("rewards.jsonl") as path, path.open("w") as file:
        for place, row in enumerate(stage.rows("data")):
            value = program.value(scorable(stage, row)) + config.noise * float(noise.standard_normal())
            file.write(json.dumps({"row": int(row.get("row", place)), "value": value}) + "\n")
            values.append(value)
    stage.progress(len(values), dataset.rows, "rows", "grading")
    output = RewardsOutput(path=stage.output_path("rewards.jsonl"), rows=len(values))
    return Succeeded(outputs=[output], summary={**summarised(values), "rows": len(values)})
