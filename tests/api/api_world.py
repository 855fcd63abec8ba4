"""A project over HTTP, with datasets, models, and runs that are moved as a worker would move them."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Sequence
from secrets import token_hex
from typing import Any

import httpx
from sqlalchemy import func
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.tables import Dataset
from steerboard.platform.database import new_id, transaction
from steerboard.registry.tables import Artifact, Model
from steerboard.runs.facts.recording import note_metrics
from steerboard.runs.state import attempt_outcomes, claims
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.state.claims import Claim
from steerboard.runs.state.sweeper import settle_all
from steerboard.runs.tables import Metric, Run, RunLog, RunOutput
from steerboard_contracts.models import ModelRole
from support.models.model_folders import info_of
from support.rows.other_token import token_headers

RECIPE = """\
name: small
inputs:
  base: {type: model}
  data: {type: dataset, kind: preferences}
stages:
  sft: {run: train, method: sft, model: $base, data: chosen}
  chosen: {run: mix, parts: [{data: $data, side: chosen}], size: 10}
  reward: {run: train, method: reward_model, model: sft, data: $data}
"""


class ApiWorld:
    """`client` speaks for a token that may do everything in `project`."""

    def __init__(self, client: httpx.Client, sessions: sessionmaker[Session], project: Project) -> None:
        self.client = client
        self.sessions = sessions
        self.project = project

    def url(self, path: str) -> str:
        return f"/api/v1/projects/{self.project.name}/{path}"

    def get(self, path: str, status: int = 200, **params: Any) -> Any:
        return self._checked(self.client.get(self.url(path), params=params), status)

    def post(self, path: str, json: Any = None, status: int = 200, **headers: str) -> Any:
        return self._checked(self.client.post(self.url(path), json=json, headers=headers), status)

    @staticmethod
    def _checked(answer: httpx.Response, status: int) -> Any:
        assert answer.status_code == status, answer.text
        if status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
        return answer.json()

    def token(self, *scopes: str, project: Project | None = None) -> dict[str, str]:
        """Headers of another token."""
        return token_headers(self.sessions, (project or self.project).id, *scopes)

    def dataset(self, name: str, kind: str = "preferences", rows: int = 10, fields: Sequence[str] = ()) -> uuid.UUID:
        with transaction(self.sessions) as session:
            dataset = Dataset(
                project_id=self.project.id,
                name=name,
                kind=kind,
                rows=rows,
                held_out_rows=1,
                content_hash=new_id().hex,
                origin={"fields": list(fields)},
            )
            session.add(dataset)
            session.flush()
            return dataset.id

    def labelled(self, name: str, rewards: list[float]) -> Any:
        """Imported grades: row i answers `Hi i` with `answer i`."""
        rows = [
            {"prompt": f"Hi {i}", "response": f"answer {i}", "source": "mine", "reward": reward}
            for i, reward in enumerate(rewards)
        ]
        file = io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode())
        form = {"name": name, "kind": "labelled"}
        answer = self.client.post(self.url("datasets/import"), data=form, files={"file": ("rows.jsonl", file)})
        return self._checked(answer, 201)["dataset"]

    def model(self, name: str, role: ModelRole = "base") -> uuid.UUID:
        with transaction(self.sessions) as session:
            return self._model(session, name, role).id

    def start(self, *overrides: str, text: str = RECIPE, **body: Any) -> Any:
        return self.post("pipelines", {"text": text, "set": ["base=tiny", "data=hh", *overrides], **body}, status=201)

    def claim(self) -> Claim:
        with transaction(self.sessions) as session:
            claim = claims.claim_next(session, pool="default", owner="w", worker="w1", devices=1, lease_seconds=30)
        assert claim is not None
        return claim

    def work(self, *outputs: RunOutput, fail: str | None = None, seconds: float = 2.0) -> Run:
        """Take the next run and finish it."""
        claim = self.claim()
        with transaction(self.sessions) as session:
            run = claims.fenced(session, claim)
            for output in outputs or (self._output(session, run),):
                output.run_id = run.id
                session.add(output)
            if fail:
                attempt_outcomes.fail(session, run, Failure(fail, "it went wrong"), seconds, 0.0)
            else:
                attempt_outcomes.succeed(session, run, {}, seconds)
        settle_all(self.sessions)
        return run

    def kept_report(self, stage: str, document: dict[str, Any]) -> None:
        """Leaves what Steerboard 0.1 left: an evaluate run that has succeeded with a report, and no evaluation."""
        run_id = uuid.UUID(self.get(f"runs/{stage}")["id"])
        with transaction(self.sessions) as session:
            run = session.get_one(Run, run_id)
            run.state, run.reason, run.error, run.reason_code = "succeeded", "finished", None, None
            run.ended_at = func.clock_timestamp()
            session.add(RunOutput(run_id=run_id, name="report", type="report", document=document))

    def _output(self, session: Session, run: Run) -> RunOutput:
        if run.kind in ("mix", "generate", "score"):
            kind = "labelled" if run.kind == "score" else "instructions"
            dataset = Dataset(
                project_id=self.project.id,
                name=new_id().hex,
                kind=kind,
                rows=1,
                held_out_rows=0,
                content_hash=new_id().hex,
                origin={},
                run_id=run.id,
            )
            session.add(dataset)
            session.flush()
            return RunOutput(name="data", type="dataset", dataset_id=dataset.id)
        if run.kind == "benchmark":
            result = {"pairs": 10, "ties": 0, "accuracy": {"value": 0.5, "low": 0.2, "high": 0.8, "n": 10}}
            return RunOutput(name="benchmark", type="benchmark", document=result)
        roles: dict[str | None, ModelRole] = {"reward_model": "reward", "sft": "sft"}
        model = self._model(session, new_id().hex, roles.get(run.method, "policy"), run)
        return RunOutput(name="model", type="model", model_id=model.id)

    def _model(self, session: Session, name: str, role: ModelRole, run: Run | None = None) -> Model:
        method = run.method if run else None
        artifact = Artifact(hash=token_hex(32), size=0, manifest={"files": []})
        session.add(artifact)
        session.flush()
        model = Model(
            project_id=self.project.id,
            name=name,
            role=role,
            method=method,
            artifact_hash=artifact.hash,
            run_id=run.id if run else None,
            info=info_of(role, method).model_dump(mode="json"),
        )
        session.add(model)
        session.flush()
        return model

    def log(self, run_id: str, *lines: str) -> None:
        with transaction(self.sessions) as session:
            for line in lines:
                session.add(RunLog(run_id=uuid.UUID(run_id), attempt=1, level="info", message=line))
                session.flush()

    def metric(self, run_id: str, name: str, values: list[float]) -> None:
        with transaction(self.sessions) as session:
            session.add_all(
                Metric(run_id=uuid.UUID(run_id), name=name, step=step, value=value, attempt=1)
                for step, value in enumerate(values, start=1)
            )
            run = session.get_one(Run, uuid.UUID(run_id))
            note_metrics(session, run, {(name, step): value for step, value in enumerate(values, start=1)})


EMPTY_REPORT = {
    "methods": [],
    "reward_model": {"held_out_accuracy": 0.9, "pairs": 10},
    "control": None,
    "labelled_rewards": None,
    "prompts": 3,
}
