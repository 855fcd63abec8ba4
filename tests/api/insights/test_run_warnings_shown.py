"""What is wrong with a run that works is shown in lists, on its page, in reports and before its launch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from api_world import ApiWorld
from sqlalchemy import select

from steerboard.platform.database import transaction
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.tables import Artifact, Model
from steerboard.runs.progress_log import Batch, write
from steerboard.runs.state import attempt_outcomes, claims
from steerboard.runs.state.claims import Claim
from steerboard_contracts.stage.events import Prepared
from steerboard_contracts.watching.warnings import RunWarning

HALF = RunWarning(code="rows_too_long", level="serious", message="50% of the 2,000 rows of texts were cut.")


def sft(**config: Any) -> dict[str, Any]:
    return {"config": {"run": "train", "method": "sft", **config}, "inputs": {"model": "tiny", "data": "texts"}}


def cut_half(world: ApiWorld) -> Claim:
    """The next run reports that half of its data is cut, and is still at work."""
    claim = world.claim()
    with transaction(world.sessions) as session:
        write(session, claim, Batch(prepared=Prepared(summary={"trainable_parameters": 7}, warnings=[HALF])))
    return claim


def test_a_run_that_cuts_half_of_its_data_says_so_while_it_works_and_after(world: ApiWorld) -> None:
    world.dataset("texts", "instructions")
    made = world.post("runs", sft(), status=201)
    assert made["warnings"] == []
    claim = cut_half(world)
    shown = world.get(f"runs/{made['id']}")
    assert (shown["state"], shown["summary"]) == ("running", {"trainable_parameters": 7})
    with transaction(world.sessions) as session:
        attempt_outcomes.succeed(session, claims.fenced(session, claim), {}, 1.0)
    (listed,) = world.get("runs")["items"]
    assert listed["state"] == "succeeded"
    assert listed["warnings"] == shown["warnings"] == [HALF.model_dump()]
    assert listed["warnings"][0]["level"] == "serious"


def test_a_pipelines_report_names_the_stages_that_were_warned_of(world: ApiWorld) -> None:
    world.start()
    world.work()
    cut_half(world)
    assert f"sft: {HALF.message}" in world.get("pipelines/small-1/report")["warnings"]


def test_a_mixture_of_experts_is_warned_of_before_and_when_it_is_launched(
    world: ApiWorld, store: ArtifactStore, tmp_path: Path
) -> None:
    world.dataset("texts", "instructions")
    (tmp_path / "config.json").write_text(json.dumps({"num_local_experts": 8}))
    manifest = store.put_folder(tmp_path)
    with transaction(world.sessions) as session:
        model = session.scalars(select(Model).where(Model.name == "tiny")).one()
        session.get_one(Artifact, model.artifact_hash).manifest = {"files": manifest.files}
    lora = sft(lora={"targets": "linear"}, lr=1e-4)
    codes = ["router_loss_left_out", "experts_not_adapted"]
    assert [warning["code"] for warning in world.post("runs/estimate", lora)["warnings"]] == codes
    assert [warning["code"] for warning in world.post("runs", lora, status=201)["warnings"]] == codes
    assert [warning["code"] for warning in world.post("runs/estimate", sft())["warnings"]] == codes[:1]
