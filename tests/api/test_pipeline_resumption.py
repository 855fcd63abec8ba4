"""A pipeline that failed or was cancelled resumes as a whole, or not at all."""

from __future__ import annotations

from typing import Any

from api_world import ApiWorld
from sqlalchemy import select

from steerboard.accounts.tables import AuditEntry
from steerboard.platform.database import transaction
from steerboard.runs.state import attempt_outcomes, claims
from support.processes.command_line import Steerboard

INDEPENDENT = """\
name: small
inputs:
  base: {type: model}
  data: {type: dataset, kind: preferences}
stages:
  one: {run: mix, parts: [{data: $data, side: chosen}], size: 10}
  two: {run: mix, parts: [{data: $data, side: rejected}], size: 10}
  three: {run: mix, parts: [{data: one}, {data: two}], size: 10}
"""


def states(pipeline: Any) -> dict[str, str]:
    return {run["name"]: run["state"] for run in pipeline["runs"]}


def test_a_cancelled_pipeline_resumes_whole_and_keeps_what_has_succeeded(world: ApiWorld) -> None:
    world.start()
    world.work()
    world.post("pipelines/small-1/cancel")
    resumed = world.post("pipelines/small-1/resume")
    assert resumed["state"] == "running"
    assert states(resumed) == {"chosen": "succeeded", "sft": "queued", "reward": "pending"}
    world.work()
    world.work()
    assert states(world.get("pipelines/small-1")) == dict.fromkeys(("chosen", "sft", "reward"), "succeeded")


def test_all_failed_and_cancelled_stages_resume_by_one_action(world: ApiWorld) -> None:
    world.start(text=INDEPENDENT)
    world.work(fail="stage_crashed")
    world.post("runs/small-1.two/cancel")
    assert states(world.get("pipelines/small-1"))["three"] in ("failed", "cancelled")
    assert states(world.post("pipelines/small-1/resume")) == {"one": "queued", "two": "queued", "three": "pending"}
    with transaction(world.sessions) as session:
        entry = session.scalars(select(AuditEntry).order_by(AuditEntry.id.desc())).first()
    assert entry is not None
    assert (entry.action, entry.detail) == ("pipeline.resume", {"stages": 3})


def test_stages_that_wait_or_run_are_left_alone(world: ApiWorld) -> None:
    world.start(text=INDEPENDENT)
    claim = world.claim()
    world.post("runs/small-1.two/cancel")
    assert states(world.post("pipelines/small-1/resume")) == {"one": "running", "two": "queued", "three": "pending"}
    with transaction(world.sessions) as session:
        attempt_outcomes.succeed(session, claims.fenced(session, claim), {}, 1.0)


def test_a_pipeline_with_nothing_to_resume_says_so(world: ApiWorld) -> None:
    world.start()
    refused = world.post("pipelines/small-1/resume", status=409)
    assert refused["code"] == "pipeline_not_resumable"
    assert "small-1" in refused["detail"]


def test_while_a_stage_is_still_being_cancelled_nothing_resumes(world: ApiWorld) -> None:
    world.start(text=INDEPENDENT)
    world.claim()
    world.post("pipelines/small-1/cancel")
    before = states(world.get("pipelines/small-1"))
    refused = world.post("pipelines/small-1/resume", status=409)
    assert refused["code"] == "pipeline_not_resumable"
    assert "one" in refused["detail"]
    assert states(world.get("pipelines/small-1")) == before


def test_the_command_says_which_stages_go_on(world: ApiWorld, steerboard: Steerboard, url: str, token: str) -> None:
    world.start()
    world.post("pipelines/small-1/cancel")
    done = steerboard(url, token, "pipelines", "resume", "small-1")
    assert (done.returncode, done.stdout) == (0, "small-1: queued, with 3 stages resumed\n")
    assert steerboard(url, token, "pipelines", "resume", "small-1").returncode == 1
