"""Resuming a run does what its detail announces."""

from __future__ import annotations

from typing import Any

from api_world import ApiWorld

from steerboard.platform.database import transaction
from steerboard.runs.state import attempt_outcomes, claims


def told(world: ApiWorld, run: str) -> tuple[bool, str]:
    detail = world.get(f"runs/{run}")
    return detail["resumable"], detail["resume_hint"]


def failed_sft(world: ApiWorld, *lines: str) -> Any:
    world.start()
    world.work()
    detail = world.get("runs/small-1.sft")
    world.log(detail["id"], *lines)
    world.work(fail="training_diverged")
    assert world.get("runs/small-1.sft")["state"] == "failed"
    return detail


def test_a_failed_training_goes_on_from_the_newest_checkpoint_that_its_log_reports(world: ApiWorld) -> None:
    failed_sft(world, "checkpoint at step 20", "step 30", "checkpoint at step 40", "no checkpoint at step 60")
    resumable, hint = told(world, "small-1.sft")
    assert resumable
    assert "the checkpoint at step 40" in hint
    assert "on a worker that still has it on disk" in hint
    world.post("runs/small-1.sft/resume")


def test_without_a_reported_checkpoint_nothing_is_promised(world: ApiWorld) -> None:
    failed_sft(world, "step 30")
    assert told(world, "small-1.sft") == (True, "Starts from the beginning: no checkpoint was reported.")
    assert not world.get("runs/small-1.sft")["continues"]
    world.log(world.get("runs/small-1.sft")["id"], "checkpoint at step 20")
    assert world.get("runs/small-1.sft")["continues"]


def test_a_run_that_never_ran_starts_from_the_beginning(world: ApiWorld) -> None:
    world.start()
    world.post("runs/small-1.chosen/cancel")
    assert told(world, "small-1.chosen") == (True, "Starts from the beginning: it has not run yet.")


def test_runs_that_wait_work_or_succeeded_are_not_resumable(world: ApiWorld) -> None:
    def refused(state: str) -> None:
        hint = f"run chosen is {state}. Only failed, cancelled and paused runs are resumed."
        assert told(world, "small-1.chosen") == (False, hint)
        assert world.post("runs/small-1.chosen/resume", status=409)["code"] == "run_not_resumable"

    world.start()
    refused("queued")
    claim = world.claim()
    refused("running")
    with transaction(world.sessions) as session:
        attempt_outcomes.succeed(session, claims.fenced(session, claim), {}, 1.0)
    refused("succeeded")


def test_a_run_behind_a_broken_one_names_the_run_to_resume_first(world: ApiWorld) -> None:
    failed_sft(world)
    resumable, hint = told(world, "small-1.reward")
    assert not resumable
    assert hint == "run reward needs the output of run sft, which training_diverged. Resume run sft first."
    assert world.post("runs/small-1.reward/resume", status=409)["code"] == "run_not_resumable"
    world.post("runs/small-1.sft/resume")
    assert not told(world, "small-1.reward")[0]


def test_a_shard_of_an_ended_run_sends_to_that_run(world: ApiWorld) -> None:
    world.dataset("prompts", "prompts")
    body = {"config": {"run": "generate", "shards": 2}, "inputs": {"model": "tiny", "data": "prompts"}}
    run = world.post("runs", body, status=201)
    shard = run["shards"][0]["id"]
    world.work(fail="out_of_memory")
    hint = "It is a shard of run generate-1, which has ended. Resume run generate-1."
    assert told(world, shard) == (False, hint)
    assert told(world, "generate-1")[0]


def test_a_resumed_run_may_cut_its_work_up_in_another_way(world: ApiWorld) -> None:
    failed_sft(world)
    asked = {"config": {"micro_tokens": 512, "gradient_checkpointing": True}}
    resumed = world.post("runs/small-1.sft/resume", asked)
    assert (resumed["config"]["micro_tokens"], resumed["config"]["gradient_checkpointing"]) == (512, True)
    assert "with micro_tokens 512, gradient_checkpointing True" in resumed["timeline"][-2]["reason"]


def test_nothing_else_of_a_resumed_run_can_be_changed(world: ApiWorld) -> None:
    before = failed_sft(world)["config"]
    refused = world.post("runs/small-1.sft/resume", {"config": {"lr": 0.1, "batch_size": 2}}, status=422)
    assert refused["code"] == "bad_config"
    assert "batch_size, lr cannot be changed" in refused["detail"]
    contradiction = world.post("runs/small-1.sft/resume", {"config": {"offload": "all"}}, status=422)
    assert contradiction["errors"] == [{"location": "config", "message": "offload needs strategy zero2 or zero3"}]
    none = world.post("runs/small-1.sft/resume", {"config": {"micro_tokens": 0}}, status=422)
    assert [error["location"] for error in none["errors"]] == ["config.micro_tokens"]
    detail = world.get("runs/small-1.sft")
    assert (detail["state"], detail["config"]) == ("failed", before)


def test_a_selection_goes_on_only_where_it_keeps_comparisons(world: ApiWorld) -> None:
    world.model("compares", role="preference")
    world.dataset("scored", "labelled", fields=("group", "candidate"))
    for name, more, hint in (("by-rewards", {}, "Starts"), ("judged", {"judge": "compares"}, "Continues after")):
        body = {"name": name, "config": {"run": "select"}, "inputs": {"data.0": "scored", **more}}
        world.post("runs", body, status=201)
        world.work(fail="stage_crashed")
        assert told(world, name)[1].startswith(hint)
