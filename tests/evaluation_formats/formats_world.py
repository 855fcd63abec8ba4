"""Evaluations without a worker: prompts, answers and judgments come from files, through the API."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.evaluation.judge_tables import Judge, Verdict
from steerboard.evaluation.tables import Entrant, Response

ROOT = "/api/v1/projects/default"


def jsonl(rows: Iterable[Any]) -> bytes:
    """Rows, or raw lines as text."""
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode()


@dataclass
class FormatsWorld:
    client: TestClient
    sessions: sessionmaker[Session]

    def send(self, path: str, content: bytes | Path, label: str = "rows.jsonl", **fields: str) -> httpx.Response:
        body, label = (content.read_bytes(), content.name) if isinstance(content, Path) else (content, label)
        return self.client.post(f"{ROOT}/{path}", files={"file": (label, body)}, data=fields)

    def evaluation(self, prompts: bytes | Path, name: str = "e", **fields: str) -> None:
        """An evaluation with no one in it yet."""
        made = self.send("prompt-sets", prompts, name=f"{name}-prompts", **fields)
        assert made.status_code == 201, made.text
        body = {"name": name, "prompts": {"set": f"{name}-prompts"}, "entrants": [], "check_against": []}
        made = self.client.post(f"{ROOT}/evaluations", json=body)
        assert made.status_code == 201, made.text

    def questions(self, number: int, turns: int = 1, evaluation: str = "e") -> None:
        """FastChat questions 81, 82, ...: `question 81, turn 1`."""
        rows = [
            {
                "question_id": 81 + i,
                "category": "math",
                "turns": [f"question {81 + i}, turn {t + 1}" for t in range(turns)],
            }
            for i in range(number)
        ]
        self.evaluation(jsonl(rows), evaluation)

    def answers(self, content: bytes | Path, evaluation: str = "e", **fields: str) -> dict[str, Any]:
        sent = self.send(f"evaluations/{evaluation}/answers", content, **fields)
        assert sent.status_code == 201, sent.text
        return dict(sent.json())

    def judgments(self, content: bytes | Path, evaluation: str = "e", **fields: str) -> dict[str, Any]:
        sent = self.send(f"evaluations/{evaluation}/judgments", content, **fields)
        assert sent.status_code == 201, sent.text
        return dict(sent.json())

    def refused(self, path: str, content: bytes | Path, **fields: str) -> dict[str, Any]:
        sent = self.send(path, content, **fields)
        assert sent.status_code >= 400, sent.text
        return dict(sent.json())

    def download(self, path: str, **query: str) -> bytes:
        answer = self.client.get(f"{ROOT}/{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.content

    def entrants(self, *names: str, evaluation: str = "e", turns: int = 1) -> None:
        """They all answer question 81 and nothing else."""
        rows = [
            {"question_id": 81, "model_id": name, "choices": [{"index": 0, "turns": [f"{name} says"] * turns}]}
            for name in names
        ]
        self.answers(jsonl(rows), evaluation)

    def responses(self, entrant: str) -> dict[tuple[int, int], tuple[list[str], list[int] | None]]:
        """{(position, sample): (turns, tokens)}"""
        with self.sessions() as session:
            mine = select(Response).join(Entrant, Entrant.id == Response.entrant_id).where(Entrant.name == entrant)
            return {
                (response.position, response.sample): (response.turns, response.tokens)
                for response in session.scalars(mine)
            }

    def verdicts(self, judge: str) -> list[tuple[Any, ...]]:
        """Everything in a verdict, in a fixed order: position, turn, a, b, a_first, value, weight, status, raw,
        superseded, second of the judgment."""
        with self.sessions() as session:
            names = {entrant.id: entrant.name for entrant in session.scalars(select(Entrant))}
            mine = select(Verdict).join(Judge, Judge.id == Verdict.judge_id).where(Judge.name == judge)
            rows = [
                (
                    *(
                        verdict.position,
                        verdict.turn,
                        names[verdict.a],
                        names.get(verdict.b) if verdict.b else None,
                        verdict.a_first,
                    ),
                    *(verdict.value, verdict.weight, verdict.status, verdict.raw, verdict.superseded),
                )
                for verdict in session.scalars(mine)
            ]
        return sorted(rows, key=repr)
