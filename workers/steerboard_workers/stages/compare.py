"""The compare stage: a preference model judges answers of an evaluation, two at a time and in both orders.

Two answers that do not fit into its window together get no verdict, and the others theirs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from steerboard_contracts.run_kinds.compare import CompareConfig
from steerboard_contracts.stage.events import Succeeded
from steerboard_contracts.stage.outputs import VerdictsOutput
from steerboard_workers.alignment.rendering.preference_prompt import Comparison
from steerboard_workers.stages.rows.kept_comparisons import ComparisonRequest, compared
from steerboard_workers.stages.runtime import Stage

ITEM = ("position", "turn", "a", "b")
UNFIT = "unfit: the two answers do not fit into the preference model's window"


def run(stage: Stage) -> Succeeded:
    config = stage.spec.config
    assert isinstance(config, CompareConfig)
    total = sum(1 for _ in stage.evaluated("comparisons"))
    preferences, before = compared(
        stage,
        "judge",
        ITEM,
        _asked(stage),
        total,
        precision=config.precision,
        batch_tokens=config.batch_tokens,
        skip_unfit=True,
    )
    unfit = flips = 0
    with stage.output_file("verdicts.jsonl") as path, path.open("w") as file:
        for row in stage.evaluated("comparisons"):
            preference = preferences.get(_item(row))
            verdict = {"forth": preference.forth, "back": preference.back} if preference else {"detail": UNFIT}
            file.write(json.dumps({name: row[name] for name in ITEM} | verdict) + "\n")
            unfit += preference is None
            flips += preference is not None and preference.flips
    if unfit:
        stage.log(f"{unfit} of {total} pairs do not fit into the model's window, and have no verdict", "warning")
    return Succeeded(
        outputs=[VerdictsOutput(path=stage.output_path("verdicts.jsonl"), rows=total)],
        summary={
            "comparisons": total - unfit,
            "unfit": unfit,
            "flip_rate": flips / (total - unfit) if total > unfit else None,
            "resumed_rows": before,
        },
    )


def _asked(stage: Stage) -> Iterator[ComparisonRequest]:
    for row in stage.evaluated("comparisons"):
        name = f"the pair of prompt {row['position']}, turn {row['turn']}"
        yield ComparisonRequest(_item(row), name, Comparison(row["prompt"], *row["responses"]))


def _item(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ITEM)
