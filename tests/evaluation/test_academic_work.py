"""Academic runs as a worker does them, in the harness's own environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from evaluation_world import EvaluationWorld

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.registry.service import get_model, register_model
from support.models.lm_eval_environment import (
    FLEXIBLE,
    ITEMS,
    PYTHON,
    STRICT,
    needs_lm_eval,
    table,
    write_lookup_model,
    write_tasks,
)
from support.models.vllm_engine import PYTHON as VLLM_PYTHON
from support.models.vllm_engine import needs_vllm


def start(world: EvaluationWorld, model: str, folder: Path, **fields: Any) -> str:
    config = {"run": "academic", "tasks": ["sums"], "folder": str(folder), **fields}
    return str(world.post("runs", {"config": config, "inputs": {"model": model}})["name"])


def test_without_the_harness_a_run_fails_at_once_and_names_the_way_out(world: EvaluationWorld, tmp_path: Path) -> None:
    start(world, "sft", tmp_path)
    run = world.supervise(benchmarks_python=Path("/no/python"))
    assert (run.state, run.reason_code, run.attempt) == ("failed", "engine_missing", 1)
    assert run.error is not None
    assert "make setup-benchmarks" in run.error["hint"]
    assert "STEERBOARD_BENCHMARKS_PYTHON" in run.error["hint"]


def test_without_vllm_a_run_by_it_fails_at_once_and_names_the_way_out(world: EvaluationWorld, tmp_path: Path) -> None:
    start(world, "sft", tmp_path, engine="vllm")
    run = world.supervise(vllm_python=Path("/no/python"))
    assert (run.state, run.reason_code, run.attempt) == ("failed", "engine_missing", 1)
    assert run.error is not None
    assert "make setup-vllm" in run.error["hint"]


@needs_lm_eval
@needs_vllm
@pytest.mark.long
def test_a_model_is_asked_by_vllm_and_its_page_has_the_figures(
    world: EvaluationWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    tasks = write_tasks(tmp_path / "tasks")
    with transaction(world.sessions) as session:
        register_model(
            session,
            world.store,
            session.get_one(Project, world.project.id),
            name="known",
            folder=write_lookup_model(tmp_path / "known", role="sft"),
            role="sft",
            method=None,
            parent_id=None,
            run_id=None,
        )
    start(world, "known", tasks, engine="vllm", vllm={"eager": True})
    run = world.supervise(benchmarks_python=PYTHON, vllm_python=VLLM_PYTHON, task_roots=str(tasks))
    assert run.state == "succeeded", (run.reason, run.error)
    (row,) = world.get("models/known/academic")
    assert [figure["value"] for figure in row["task"]["figures"]] == [STRICT, FLEXIBLE]


@needs_lm_eval
@pytest.mark.long
def test_two_models_are_asked_and_compared_and_other_folders_are_refused(
    world: EvaluationWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    tasks = write_tasks(tmp_path / "tasks")
    # The parent answers every question wrong that the other answers without the sign.
    worse = {word: "#0" if word.startswith("q") and not to.startswith("#") else to for word, to in table().items()}
    folders = {"parent": worse, "child": table()}
    for name, follows in folders.items():
        with transaction(world.sessions) as session:
            project = session.get_one(Project, world.project.id)
            parent = None if name == "parent" else get_model(session, project, "parent")
            register_model(
                session,
                world.store,
                project,
                name=name,
                folder=write_lookup_model(tmp_path / name, follows, role="policy" if parent else "sft"),
                role="policy" if parent else "sft",
                method=None,
                parent_id=parent.id if parent else None,
                run_id=None,
            )
        start(world, name, tasks)
        run = world.supervise(benchmarks_python=PYTHON, task_roots=str(tmp_path / "tasks"))
        assert run.state == "succeeded", (run.reason, run.error)
    (row,) = world.get("models/child/academic")
    strict, flexible = row["task"]["figures"]
    assert (strict["value"], row["task"]["items"], row["task"]["shots"]) == (STRICT, ITEMS, 0)
    differences = {difference["figure"]: difference["difference"] for difference in row["differences"]}
    assert (differences["strict"]["value"], differences["flexible"]["value"]) == (0.0, pytest.approx(12 / ITEMS))
    assert differences["strict"]["low"] < 0 < differences["strict"]["high"]
    assert 0 < differences["flexible"]["low"] < flexible["value"]
    start(world, "child", tasks)
    refused = world.supervise(benchmarks_python=PYTHON)
    assert (refused.state, refused.reason_code) == ("failed", "folder_not_allowed")
    assert refused.error is not None
    assert "STEERBOARD_TASK_ROOTS" in refused.error["hint"]
