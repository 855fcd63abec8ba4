"""Answers to the harness's requests, kept by question and model."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steerboard_contracts.files.resumable_rows import ResumableRows
from steerboard_contracts.pinned_endpoint import PinnedEndpoint
from steerboard_workers.stages.harness.answers import KEY, Missing, RecordedAnswers

PIN = PinnedEndpoint(id=uuid.UUID(int=1), base_url="https://models.example/v1", model="m")


@dataclass(frozen=True)
class Request:
    args: tuple[Any, ...]


def answered(folder: Path, pin: PinnedEndpoint | None, by: str, requests: Sequence[str] = ("one", "two")) -> list[str]:
    """All answers, those that are missing by this one."""
    with ResumableRows(folder, 1, KEY) as kept:
        answers = RecordedAnswers(kept, lambda done, total: None, pin)

        def ask(missing: list[Missing]) -> list[str]:
            return [f"{by} to {asked.request.args[0]}" for asked in missing]

        return answers.fill("generate_until", [Request((text,)) for text in requests], ask)


def test_what_was_answered_is_not_asked_again(tmp_path: Path) -> None:
    for pin in (None, PIN):
        folder = tmp_path / str(pin is None)
        assert answered(folder, pin, "first", ["one"]) == ["first to one"]
        assert answered(folder, pin, "second") == ["first to one", "second to two"]


def test_what_another_model_or_server_answered_is_asked_again(tmp_path: Path) -> None:
    answered(tmp_path, PIN, "first")
    others = {"id": uuid.UUID(int=2)}, {"base_url": "https://other.example/v1"}, {"model": "another"}
    for other in others:
        changed = PIN.model_copy(update=other)
        assert answered(tmp_path, changed, "second") == ["second to one", "second to two"], other
    assert answered(tmp_path, PIN, "third") == ["first to one", "first to two"]
