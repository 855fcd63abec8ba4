"""Runs whose engine is vLLM, on real workers: it is missing, it is killed, it works in shards."""

from __future__ import annotations

import json
import signal
import uuid
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from fault_stack import BASE, Stack
from sqlalchemy import select

from steerboard.accounts.tables import Project
from steerboard.datasets.tables import Dataset, Reward, SampleRow
from steerboard.platform.database import transaction
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.service import register_model
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.tables import Run, RunAttempt, RunOutput
from steerboard_workers.stages.models.model_io import load_reward_model, load_tokenizer
from steerboard_workers.stages.models.scoring import Scorable, reward_engine, score_texts
from support.models.vllm_engine import PYTHON, needs_vllm, write_models
from support.patience import PATIENCE

VLLM = {"engine": "vllm", "vllm": {"eager": True}}
GENERATE = {
    "run": "generate",
    "split": "all",
    "decoding": {"temperature": 1.0, "n": 8, "max_new_tokens": 24},
    "batch_size": 4,
}
TOTAL = 120 * 8


@pytest.fixture
def vllm_stack(stack: Stack) -> Stack:
    """The stack with a base model whose attention heads vLLM's kernels for CPUs know."""
    stack.base_id = stack.register_base("wide", {**BASE, "hidden": 64})
    return stack


def texts_of(stack: Stack, run_id: uuid.UUID) -> list[str]:
    with transaction(stack.sessions) as session:
        dataset = session.scalars(
            select(Dataset.id).join(RunOutput, RunOutput.dataset_id == Dataset.id).where(RunOutput.run_id == run_id)
        ).one()
        rows = session.scalars(select(SampleRow.sample).where(SampleRow.dataset_id == dataset).order_by(SampleRow.row))
        return [json.dumps(sample, sort_keys=True) for sample in rows]


def kept_rows(stack: Stack, run_id: uuid.UUID) -> int:
    """Answers that another attempt would find."""
    files = (stack.home / "work" / str(run_id) / "checkpoints").glob("a*-rows.jsonl")
    return sum(path.read_bytes().count(b"}\n") for path in files)


def working_core(stack: Stack, run_id: uuid.UUID) -> psutil.Process:
    """vLLM's core, where it has a process of its own, when answers are kept and most are still to be written: it runs
    ahead of who reads its tokens, so it is found before it is up. It renames itself, and keeps the mark of its run."""
    cores: list[psutil.Process] = []

    def begun() -> bool:
        with suppress(psutil.NoSuchProcess):  # short ones, which look for kernels
            processes = map(psutil.Process, stack.stage_pids(run_id))
            cores[:] = [process for process in processes if "EngineCore" in " ".join(process.cmdline())]
        return bool(cores)

    stack.wait(begun, 200, "the engine did not begin")
    stack.wait(lambda: kept_rows(stack, run_id) > 2, 200, "no answer was kept", pause=0.001)
    (core,) = cores
    return core


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.mark.long
def test_without_vllm_a_run_that_asks_for_it_fails_at_once_and_says_what_to_do(stack: Stack) -> None:
    run_id = stack.create("answers", {**GENERATE, **VLLM}, max_attempts=3)
    stack.start_worker("only", STEERBOARD_VLLM_PYTHON=str(stack.home / "no" / "python"))
    (run,) = stack.finish(run_id)
    assert (run.state, run.reason_code, run.attempt) == ("failed", "engine_missing", 1)
    assert run.error is not None
    assert "make setup-vllm" in run.error["hint"]
    assert "STEERBOARD_VLLM_PYTHON" in run.error["hint"]


@needs_vllm
@pytest.mark.long
def test_a_killed_vllm_stage_leaves_nothing_behind_and_the_run_goes_on_with_its_answers(vllm_stack: Stack) -> None:
    stack = vllm_stack
    run_id = stack.create("answers", {**GENERATE, **VLLM})
    stack.start_worker("only", STEERBOARD_STAGE_MEMORY_MB="12000")
    stack.wait(lambda: kept_rows(stack, run_id) > 40, 200, "no answer was kept", pause=0.01)
    pids = stack.stage_pids(run_id)
    assert any(str(PYTHON).encode() in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids)
    assert stack.kill_stage(run_id)
    (run,) = stack.finish(run_id)
    assert (run.state, run.attempt) == ("succeeded", 2), run.reason
    assert run.summary is not None
    assert 40 < run.summary["resumed_rows"] < TOTAL
    assert run.summary["rows"] + run.summary["empty"] == TOTAL
    assert not stack.stage_pids(run_id)
    undisturbed = stack.create("undisturbed", {**GENERATE, **VLLM, "shards": 2})
    (other,) = stack.finish(undisturbed, seconds=400)  # engines start one after the other
    assert other.state == "succeeded", other.reason
    pairs = list(zip(texts_of(stack, run_id), texts_of(stack, undisturbed), strict=True))
    # Other batches round otherwise, so a draw between two almost equal tokens may fall the other way.
    assert sum(one == two for one, two in pairs) > 0.99 * len(pairs)


@needs_vllm
@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["dies", "hangs"])
def test_an_engine_process_that_dies_or_hangs_is_an_error_and_another_attempt_ends_the_run(
    vllm_stack: Stack, how: signal.Signals
) -> None:
    """vLLM's core has a process of its own here, as on a GPU."""
    stack = vllm_stack
    options = {"eager": True, "step_seconds": 15}
    run_id = stack.create("answers", {**GENERATE, "engine": "vllm", "vllm": options})
    stack.start_worker("only", VLLM_ENABLE_V1_MULTIPROCESSING="1", STEERBOARD_LEASE_SECONDS="60")
    working_core(stack, run_id).send_signal(how)
    stack.wait(lambda: stack.run(run_id).attempt == 2, 60, "the engine's end was not noticed")
    (run,) = stack.finish(run_id, seconds=400)
    assert (run.state, run.attempt) == ("succeeded", 2), run.reason
    with transaction(stack.sessions) as session:
        first = session.get_one(RunAttempt, (run_id, 1))
    assert first.reason is not None
    assert first.reason.startswith("engine_failed: ")
    assert run.summary is not None
    assert 2 < run.summary["resumed_rows"] < TOTAL


@needs_vllm
@pytest.mark.long
def test_an_engine_that_lost_its_stage_its_guardian_and_its_worker_is_ended_before_another_attempt(
    vllm_stack: Stack,
) -> None:
    stack = vllm_stack
    run_id = stack.create("answers", {**GENERATE, **VLLM})
    settings = {"VLLM_ENABLE_V1_MULTIPROCESSING": "1", "STEERBOARD_LEASE_SECONDS": "8"}
    worker = stack.start_worker("first", **settings)
    core = working_core(stack, run_id)
    stage = core.parent()
    assert stage is not None
    guardian = stage.parent()
    assert guardian is not None
    assert any("guardian.py" in word for word in guardian.cmdline())
    # Stopped, neither of them can end it: the worker that sees its guardian's end, and the core itself.
    worker.signal(signal.SIGSTOP)
    core.suspend()
    for process in (guardian, stage):
        process.kill()
    worker.signal(signal.SIGKILL)
    psutil.wait_procs([stage], timeout=PATIENCE)
    assert gone(stage)
    assert not gone(core)
    stack.start_worker("second", **settings)
    stack.wait(lambda: stack.run(run_id).attempt == 2, 60, "no other attempt began")
    stack.wait(lambda: gone(core), 20, "the core of the first attempt still runs")


@needs_vllm
@pytest.mark.long
def test_a_reward_model_gives_every_row_one_reward_in_shards_by_vllm_though_one_is_killed(
    stack: Stack, tmp_path: Path
) -> None:
    write_models(tmp_path, load_tokenizer(stack.shared.base))
    with transaction(stack.sessions) as session:
        model = register_model(
            session,
            ArtifactStore(stack.environment["STEERBOARD_ARTIFACT_URL"]),
            session.get_one(Project, stack.project_id),
            name="reward",
            folder=tmp_path / "reward",
            role="reward",
            method=None,
            parent_id=None,
            run_id=None,
        )
    inputs = {"data": InputRef(dataset=stack.data_id), "reward": InputRef(model=model.id)}
    labels = stack._create("labels", {"run": "score", **VLLM, "shards": 3}, inputs)
    stack.start_worker("one")
    with transaction(stack.sessions) as session:
        first = session.scalars(select(Run.id).where(Run.parent_id == labels, Run.shard == 0)).one()
    stack.wait(lambda: stack.kill_stage(first), 60, "no shard began", pause=0.05)
    (run,) = stack.finish(labels, seconds=400)
    assert run.state == "succeeded", run.reason
    assert stack.run(first).attempt == 2
    with transaction(stack.sessions) as session:
        rewards = {reward.row: reward.value for reward in session.scalars(select(Reward))}
        of_data = select(SampleRow).where(SampleRow.dataset_id == stack.data_id)
        samples = {row.row: Scorable(row.sample["prompt"], row.sample["response"]) for row in session.scalars(of_data)}
    ours = score_texts(reward_engine(load_reward_model(tmp_path / "reward")), list(samples.values()), 2048)
    assert max(ours) - min(ours) > 1
    assert rewards == pytest.approx(dict(zip(samples, ours, strict=True)), abs=1e-3, rel=0)


@needs_vllm
@pytest.mark.long
def test_a_training_whose_sampling_process_is_killed_goes_on_in_another_attempt(vllm_stack: Stack) -> None:
    stack = vllm_stack
    common = {"batch": 6, "answers": 4, "max_new_tokens": 16, "epochs": 4, "lr": 1e-3}
    rules = {"rules": [{"kind": "regex", "pattern": "s"}]}
    config = {"run": "train", "method": "rloo", "max_steps": 40, "checkpoint_every": 2, **VLLM, **common, **rules}
    inputs = {"data": InputRef(dataset=stack.data_id), "model": InputRef(model=stack.base_id)}
    run_id = stack._create("online", config, inputs)
    stack.start_worker("only")
    checkpoints = stack.home / "work" / str(run_id) / "checkpoints"
    stack.wait(lambda: checkpoints.is_dir() and any(checkpoints.iterdir()), 200, "no checkpoint was written")
    processes = map(psutil.Process, stack.stage_pids(run_id))
    (sampling,) = [process for process in processes if "steerboard_workers.engines.live.serve" in process.cmdline()]
    sampling.kill()
    (run,) = stack.finish(run_id, seconds=400)
    assert (run.state, run.attempt) == ("succeeded", 2), run.reason
    with transaction(stack.sessions) as session:
        first = session.get_one(RunAttempt, (run_id, 1))
        assert first.reason is not None
        assert first.reason.startswith("engine_failed: the vLLM process ended with status -9")
    assert run.summary is not None
    assert run.summary["steps"] == 40
    assert not stack.stage_pids(run_id)
