"""Pairs to clean, over HTTP: what each rule is about, and prompts of evaluations among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.service import register_rows
from steerboard.evaluation.tables import Evaluation, EvaluationPrompt, PromptSet
from steerboard.platform.database import transaction

BASE = "/api/v1/projects/default/datasets"
LONG = " ".join(f"word{number}" for number in range(90))

ROWS: list[dict[str, Any]] = [
    {"prompt": "Where to?", "chosen": "Left.", "rejected": "Right.", "margin": 2.0, "id": "a"},
    {"prompt": "Where to?", "chosen": "Left.", "rejected": "Right.", "margin": 1.0, "id": "b"},
    {"prompt": "Who?", "chosen": "Me.", "rejected": "You.", "id": "c"},
    {"prompt": "Who?", "chosen": "You.", "rejected": "Me.", "id": "d"},
    {"prompt": "What for?", "chosen": LONG, "rejected": "No.", "id": "e"},
    {"prompt": "What for?", "chosen": LONG.replace("word40", "other"), "rejected": "No.", "id": "f"},
    {"prompt": "When?", "chosen": "\u200b", "rejected": "Now.", "id": "g"},
    {"prompt": "Why?", "chosen": "So.", "rejected": "So. ", "id": "h"},
    {"prompt": "How far?", "chosen": "Far.", "rejected": "Near.", "margin": 0.1, "id": "i"},
    {"prompt": "What is the capital of all?", "chosen": "None.", "rejected": "Some.", "id": "j"},
]


class Cleaning:
    def __init__(self, client: TestClient, sessions: sessionmaker[Session], folder: Path) -> None:
        self.client, self.sessions, self.folder = client, sessions, folder

    def dataset(self, rows: list[dict[str, Any]] = ROWS, name: str = "pairs", **more: Any) -> None:
        """Registers a dataset as a stage makes one, which cleans nothing."""
        path = self.folder / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        with transaction(self.sessions) as session:
            project = session.scalars(select(Project)).one()
            project.held_out_fraction = 1e-9
            kind = more.pop("kind", "preferences")
            register_rows(session, project, name=name, kind=kind, path=path, run_id=None, **more)

    def exam(self, *prompts: str) -> None:
        with transaction(self.sessions) as session:
            project = session.scalars(select(Project)).one()
            exam = Evaluation(
                project_id=project.id,
                name="exam",
                description="",
                prompts_from={},
                checked_against=[],
                seed=0,
                version=1,
                created_by="test",
            )
            session.add(exam)
            session.flush()
            for position, prompt in enumerate(prompts):
                messages = [{"role": "user", "content": prompt}]
                session.add(
                    EvaluationPrompt(
                        evaluation_id=exam.id,
                        position=position,
                        question_id=str(position),
                        messages=messages,
                        follow_ups=[],
                    )
                )
            questions = [{"messages": [{"role": "user", "content": "How far?"}]}]
            session.add(
                PromptSet(project_id=project.id, name="bench", format="plain", prompts=questions, created_by="test")
            )

    def preview(self, dataset: str = "pairs", **rules: Any) -> Any:
        answer = self.client.post(f"{BASE}/{dataset}/cleaning/preview", json=rules)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def clean(self, dataset: str = "pairs", status: int = 201, **rules: Any) -> Any:
        answer = self.client.post(f"{BASE}/{dataset}/cleaning", json=rules)
        assert answer.status_code == status, answer.text
        return answer.json()

    def ids(self, dataset: str) -> list[str]:
        items = self.client.get(f"{BASE}/{dataset}/samples?limit=500").json()["items"]
        return [item["extra"]["id"] for item in items]
