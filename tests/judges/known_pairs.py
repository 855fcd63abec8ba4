"""Datasets of pairs whose better side is known, and judges that are asked about them."""

from __future__ import annotations

import json
from typing import Any

from judge_world import PROJECT, JudgeWorld


def pairs(world: JudgeWorld, number: int = 20, name: str = "pairs") -> None:
    rows = [
        {
            "prompt": f"Question {at}?" + (f" Of {name}." if name != "pairs" else ""),
            "chosen": f"good {at}",
            "rejected": f"bad {at}",
        }
        for at in range(number)
    ]
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    made = world.client.post(f"{PROJECT}/datasets/import", data={"name": name}, files={"file": ("rows.jsonl", content)})
    assert made.status_code == 201, made.text


def calibrate(world: JudgeWorld, judge: str, **body: Any) -> Any:
    return world.client.post(f"{PROJECT}/evaluations/e/judges/{judge}/calibrations", json={"dataset": "pairs", **body})
