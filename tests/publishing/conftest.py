from __future__ import annotations

import io
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pushed_things import PushWorld, enter, register
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.tables import Dataset
from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.runs.tables import Run, RunInput, RunOutput
from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.prompts import Normaliser, ScoreScale
from steerboard_contracts.run_kinds.base import BaseModelConfig
from support.models.model_folders import info_of
from support.processes.command_line import steerboard, url
from support.servers.hub_server import point_at
from support.servers.push_hub import PushHub, push_hub

__all__ = ["steerboard", "url"]

URL = "/api/v1/projects/default"
NORMALISER = Normaliser(mean=2.0, sd=4.0, n=100, reward_source="judge-rm")
# A model of this much has room for a prompt and an answer.
_WINDOW = 256


@pytest.fixture
def hub(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> Iterator[PushHub]:
    """A hub that is also this process's, for pulls; no environment has a token."""
    with push_hub() as made:
        for name, value in made.environment(token=None).items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", "/nowhere")
        monkeypatch.setenv("HF_TOKEN_PATH", "/nowhere")
        point_at(made.url, monkeypatch)
        # One that has read the address of another hub stays with it.
        app.state.import_processes.close()
        yield made


@pytest.fixture
def world(
    client: httpx.Client, sessions: sessionmaker[Session], project: Project, store: ArtifactStore, settings: Settings
) -> PushWorld:
    return PushWorld(client, sessions, store, settings)


@pytest.fixture
def rows(client: httpx.Client, project: Project) -> Any:
    """Sixty preferences, some of them held out."""
    content = "".join(
        json.dumps({"prompt": f"Say {i}", "chosen": f"yes {i}", "rejected": "no", "tag": i}) + "\n" for i in range(60)
    )
    file = io.BytesIO(content.encode())
    answer = client.post(f"{URL}/datasets/import", data={"name": "hh"}, files={"file": ("hh.jsonl", file)})
    return answer.json()["dataset"]


@pytest.fixture
def steered(
    sessions: sessionmaker[Session], store: ArtifactStore, project: Project, tmp_path: Path, rows: Any
) -> uuid.UUID:
    """A policy of scores over a hub's base, trained by a run on a labelled dataset."""
    base_info = info_of("base", None).model_copy(
        update={"lineage": {"source": "org/tiny", "revision": "b" * 40, "licence": "mit"}}
    )
    base = register(sessions, store, project, tmp_path, "base", base_info)
    with transaction(sessions) as session:
        data = session.get_one(Dataset, uuid.UUID(rows["id"]))
        rewards = {"n": 60, "mean": 2.0, "sd": 4.0, "low": -10.0, "high": 14.0, "p20": -2.0, "p50": 2.0, "p80": 6.0}
        data.origin = {**data.origin, "rewards": rewards}
        run = Run(
            project_id=project.id,
            name="align",
            kind="train",
            method="decision_transformer",
            config={"run": "train", "method": "decision_transformer", "lr": 2e-5, "epochs": 3, "lora": {"rank": 8}},
            state="succeeded",
            reason="finished",
            pool="default",
            priority=0,
            attempt=1,
            failed_attempts=0,
            max_attempts=3,
            reuse=True,
            device_seconds=0.0,
            failed_device_seconds=0.0,
            warnings=[{"code": "w", "level": "warning", "message": "the held-out loss rose"}],
            created_by="tester",
        )
        session.add(run)
        session.flush()
        session.add(RunInput(run_id=run.id, name="model", model_id=base))
        session.add(RunInput(run_id=run.id, name="data", dataset_id=data.id))
        run_id = run.id
    scale = ScoreScale(kind="zscore", normaliser=NORMALISER)
    info = info_of("policy", "decision_transformer").model_copy(
        update={"condition": ConditionFormat.of_score(), "score_scale": scale, "normaliser": NORMALISER}
    )
    made = register(sessions, store, project, tmp_path, "dt", info, parent_id=base, run_id=run_id)
    with transaction(sessions) as session:
        session.add(RunOutput(run_id=run_id, name="model", type="model", model_id=made))
    return made


@pytest.fixture
def real_policy(sessions: sessionmaker[Session], store: ArtifactStore, project: Project, tmp_path: Path) -> uuid.UUID:
    """`dt`, a tiny Llama of random weights that takes scores."""
    from steerboard_workers.stages.base import random_llama, train_tokenizer
    from steerboard_workers.stages.models.model_saving import save_model

    texts = [f"User: Name {n} red things. Assistant: <rm_score> 5.00 Here are {n} apples." for n in range(60)]
    tokenizer = train_tokenizer(texts * 3, 400, _WINDOW)
    config = BaseModelConfig(source="random:tiny-llama", hidden=32, layers=2, heads=2, max_length=_WINDOW)
    model = random_llama(config, tokenizer)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    info = info_of("policy", "decision_transformer").model_copy(
        update={"condition": ConditionFormat.of_score(), "max_length": _WINDOW, "parameters": parameters}
    )
    save_model(tmp_path / "dt", model.eval(), tokenizer, info)
    return enter(sessions, store, project, tmp_path / "dt", info)
