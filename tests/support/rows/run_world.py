"""Runs without their stages: real rows in a real Postgres."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel
from sqlalchemy import select, text
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.tables import Dataset
from steerboard.platform.database import new_id, transaction
from steerboard.registry.tables import Artifact, Model
from steerboard.runs import progress_log
from steerboard.runs.state import claims, lifecycle, sweeper
from steerboard.runs.state.claims import Claim
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.tables import Pipeline, Run, RunOutput, RunTransition
from steerboard_contracts.run_config import RUN_CONFIG
from steerboard_contracts.stage.events import StageEvent
from steerboard_workers.supervisor.progress_log import Journal

Sessions = sessionmaker[Session]


class World:
    """A project's runs, seen and moved the way the API and workers do it: one transaction a call."""

    def __init__(self, sessions: Sessions, project: Project) -> None:
        self.sessions = sessions
        self.project = project

    def emit(self, claim: Claim, *events: StageEvent) -> None:
        """Stores the events as a worker stores those of its stage."""

        def write(batch: progress_log.Batch) -> None:
            with transaction(self.sessions) as session:
                progress_log.write(session, claim, batch)

        journal = Journal(write)
        for event in events:
            journal.add(event)
        journal.flush_or_raise()

    def dataset(self, content_hash: str | None = None) -> uuid.UUID:
        with transaction(self.sessions) as session:
            dataset = Dataset(
                project_id=self.project.id,
                name=f"data-{new_id().hex[-12:]}",
                kind="instructions",
                rows=1,
                held_out_rows=0,
                content_hash=content_hash or new_id().hex,
                origin={},
            )
            session.add(dataset)
            session.flush()
            return dataset.id

    def model(self, run_id: uuid.UUID | None = None) -> uuid.UUID:
        with transaction(self.sessions) as session:
            artifact = Artifact(hash=new_id().hex, size=0, manifest={"files": []})
            session.add(artifact)
            session.flush()
            model = Model(
                project_id=self.project.id,
                name=f"model-{new_id().hex[-12:]}",
                role="sft",
                artifact_hash=artifact.hash,
                run_id=run_id,
                info={"role": "sft", "architecture": "LlamaForCausalLM", "parameters": 1, "max_length": 64},
            )
            session.add(model)
            session.flush()
            return model.id

    def pipeline(self, recipe: str, **settings: BaseModel) -> uuid.UUID:
        """One without runs, whose plan has these rounds or this sweep."""
        with transaction(self.sessions) as session:
            pipeline = Pipeline(
                project_id=self.project.id,
                name=f"{recipe}-{new_id().hex[-6:]}",
                recipe={"name": recipe},
                recipe_text="",
                settings={name: planned.model_dump(mode="json") for name, planned in settings.items()},
                created_by="tester",
            )
            session.add(pipeline)
            session.flush()
            return pipeline.id

    def create(self, name: str = "r", *, config: dict[str, Any] | None = None, **options: Any) -> uuid.UUID:
        """A `mix` run with no inputs unless told otherwise."""
        inputs = {
            key: ref if isinstance(ref, InputRef) else InputRef(run=ref)
            for key, ref in options.pop("inputs", {}).items()
        }
        with transaction(self.sessions) as session:
            run = lifecycle.create_run(
                session,
                session.get_one(Project, self.project.id),
                name=name,
                config=RUN_CONFIG.validate_python(config or {"run": "mix", "parts": [{}], "seed": hash(name) % 2**31}),
                inputs=inputs,
                created_by="tester",
                **{"reuse": False, **options},
            )
            return run.id

    def get(self, run_id: uuid.UUID) -> Run:
        with transaction(self.sessions) as session:
            return session.get_one(Run, run_id)

    def state(self, run_id: uuid.UUID) -> str:
        return self.get(run_id).state

    def claim(self, pool: str = "default", owner: str = "w1", lease_seconds: float = 30) -> Claim | None:
        with transaction(self.sessions) as session:
            return claims.claim_next(
                session, pool=pool, owner=owner, worker=f"worker {owner}", devices=1, lease_seconds=lease_seconds
            )

    def act(self, claim: Claim, action: Callable[[Session, Run], None]) -> None:
        """One fenced transaction on behalf of a claim."""
        with transaction(self.sessions) as session:
            action(session, claims.fenced(session, claim))

    def let_lease_expire(self) -> None:
        """Expires the lease of the one run that is running; the sweeper finds it."""
        with transaction(self.sessions) as session:
            session.execute(text("UPDATE runs SET lease_expires_at = clock_timestamp() - interval '1 second'"))
        with transaction(self.sessions) as session:
            assert sweeper.expire_leases(session, retry_seconds=0) == 1

    def give_output(self, run_id: uuid.UUID) -> uuid.UUID:
        model = self.model(run_id)
        with transaction(self.sessions) as session:
            session.add(RunOutput(run_id=run_id, name="model", type="model", model_id=model))
        return model

    def timeline(self, run_id: uuid.UUID) -> list[str]:
        with transaction(self.sessions) as session:
            return list(
                session.scalars(
                    select(RunTransition.to_state).where(RunTransition.run_id == run_id).order_by(RunTransition.id)
                )
            )
