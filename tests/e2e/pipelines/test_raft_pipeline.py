"""The recipe raft from end to end on the synthetic demo data, whose answers have a known quality."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboard_world import World

from steerboard_workers.synthetic import write_demo_data

# The demo's model and rates, in recipes/demo.yaml.
SETTINGS = (
    *("base=random:tiny-llama", "base.vocabulary=1200", "base.layers=3", "base.max_length=256"),
    *("instructions=instructions", "preferences=preferences", "prompts=prompts"),
    *("sft.lr=1.5e-3", "sft.batch=16", "sft.epochs=3"),
    *("reward.lr=6.0e-4", "reward.batch=8", "reward.epochs=2.5"),
    *("answers.decoding.max_new_tokens=96", "answers.batch_size=128", "answers.limit=250"),
    *("raft.lr=1.0e-3", "raft.batch=16", "raft.epochs=2"),
    *("report.quality=synthetic", "report.prompts=80", "report.batch_size=128"),
    "report.decoding.max_new_tokens=96",
)


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[World]:
    running = World.for_training(tmp_path)
    running.start()
    yield running
    running.stop()


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_raft_answers_better_than_sft_by_reward_and_by_known_quality(platform: World, tmp_path: Path) -> None:
    write_demo_data(tmp_path / "data")
    for kind in ("instructions", "preferences", "prompts"):
        rows = [json.loads(line) for line in (tmp_path / "data" / f"{kind}.jsonl").read_text().splitlines()]
        platform.import_rows(kind, kind, rows)
    started = platform.client.post("pipelines", json={"recipe": "raft", "set": list(SETTINGS)})
    assert started.status_code == 201, started.text
    name = started.json()["name"]

    def ended() -> bool:
        return platform.get(f"pipelines/{name}")["state"] in ("succeeded", "failed", "cancelled")

    platform.wait(ended, "the pipeline", 2200)
    assert platform.get(f"pipelines/{name}")["state"] == "succeeded"
    selection = platform.get(f"runs/{name}.best/selection")
    curve = [point["rewards"][0] for point in selection["curve"]]
    assert curve == sorted(curve)
    assert selection["rewards"][0]["best"]["low"] > selection["rewards"][0]["mean"]["high"]
    rows = {row["name"]: row for row in platform.get(f"pipelines/{name}/report")["methods"]}
    print(
        {one: {key: row[key] for key in ("reward_mean", "quality_mean", "device_seconds")} for one, row in rows.items()}
    )
    sft, raft = rows["sft"], rows["raft"]
    assert raft["method"] == "raft"
    assert raft["reward_low"] > sft["reward_mean"]
    assert raft["quality_mean"] > sft["quality_mean"]
    assert raft["independent_win_rate_vs_baseline"] > 0.5
    # Its own training, and the generation, scoring and selection behind its data.
    stages = ("answers", "scored", "best", "raft")
    parts = [platform.get(f"runs/{name}.{stage}")["device_seconds"] for stage in stages]
    assert raft["device_seconds"] == pytest.approx(sum(parts), rel=0.01)
    made = {(node["type"], node["name"]) for node in platform.get(f"models/{name}.raft/lineage")["nodes"]}
    wanted = {("dataset", f"{name}.{stage}") for stage in ("answers", "scored", "best")}
    assert wanted | {("run", "best"), ("model", f"{name}.reward")} <= made
