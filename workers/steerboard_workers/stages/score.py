"""The score stage: a reward model labels every row of a dataset, each exactly once."""

from __future__ import annotations

import json
import math

from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.files.resumable_rows import ResumableRows
from steerboard_contracts.run_kinds.score import ScoreConfig
from steerboard_contracts.stage.events import Succeeded
from steerboard_contracts.stage.outputs import RewardsOutput
from steerboard_workers.engines.rewards import RewardEngine, RewardNotFinite
from steerboard_workers.stages.models.open_models import open_reward_model
from steerboard_workers.stages.models.scoring import Scorable, score_batches
from steerboard_workers.stages.rows.given_responses import scorable, summarised
from steerboard_workers.stages.rows.resumable_rows import resumable_rows
from steerboard_workers.stages.runtime import Stage

# Rows read, rendered and scored at a time: enough to sort by length, few enough to keep in memory.
BLOCK_ROWS = 16_384


def run(stage: Stage) -> Succeeded:
    config = stage.spec.config
    assert isinstance(config, ScoreConfig)
    places = _places(stage)
    with (
        open_reward_model(stage, "reward", config, config.precision, config.aggregate) as rewards,
        resumable_rows(stage, ("row",)) as partial,
    ):
        before = len(partial.rows)
        block: list[tuple[int, Scorable]] = []
        for place, row in enumerate(stage.rows("data")):
            if place % stage.spec.shard.count != stage.spec.shard.index:
                continue
            number = int(row.get("row", place))
            if (number,) not in partial:
                block.append((number, scorable(stage, row)))
            if len(block) == BLOCK_ROWS:
                _score(stage, config, rewards, partial, block, places)
                block = []
        _score(stage, config, rewards, partial, block, places)
        scored = sorted(partial.rows.values(), key=lambda row: int(row["row"]))
    if len(scored) != places:
        raise BadInput(f"{places} rows were to be scored, but {len(scored)} have a reward", code="row_count_differs")
    with stage.phases.measure("data"), stage.output_file("rewards.jsonl") as path, path.open("w") as file:
        for row in scored:
            file.write(json.dumps({"row": row["row"], "value": row["value"]}) + "\n")
    output = RewardsOutput(path=stage.output_path("rewards.jsonl"), rows=places)
    values = [row["value"] for row in scored]
    return Succeeded(outputs=[output], summary={**summarised(values), "rows": places, "resumed_rows": before})


def _places(stage: Stage) -> int:
    """How many rows this shard has."""
    rows, shard = stage.dataset("data").rows, stage.spec.shard
    if rows == 0:
        raise EmptySelection(f"dataset {stage.dataset('data').name} has no rows to score")
    return len(range(shard.index, rows, shard.count))


def _score(
    stage: Stage,
    config: ScoreConfig,
    rewards: RewardEngine,
    partial: ResumableRows,
    block: list[tuple[int, Scorable]],
    total: int,
) -> None:
    with stage.phases.measure("score") as phase:
        for places, values in score_batches(rewards, [sample for _, sample in block], config.batch_tokens, phase):
            for place, value in zip(places, values, strict=True):
                if not math.isfinite(value):
                    raise RewardNotFinite(
                        f"the reward of row {block[place][0]} is {value}", hint="Score with precision fp32."
                    )
            partial.add({"row": block[p][0], "value": v} for p, v in zip(places, values, strict=True))
            stage.progress(len(partial.rows), total, "rows", "scoring")
