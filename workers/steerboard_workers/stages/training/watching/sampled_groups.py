"""Emits the answers to some prompts as they are sampled, and keeps them with checkpoints: an attempt that resumes emits
those of the steps before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steerboard_contracts.online.answer_groups import AnswerGroup
from steerboard_contracts.stage.events import Sampled
from steerboard_workers.stages.runtime import Stage


class SampledGroups:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._kept: list[Sampled] = []

    def keep(self, step: int, group: AnswerGroup) -> None:
        sampled = Sampled(step=step, group=group)
        self._kept.append(sampled)
        self._stage.emit(sampled)

    def look(self, step: int) -> None:
        """Answers are kept when they are sampled, not when the model is evaluated."""

    def state(self) -> dict[str, Any]:
        return {"groups": [group.model_dump(mode="json") for group in self._kept]}

    def restore(self, state: Mapping[str, Any] | None) -> None:
        self._kept = [Sampled.model_validate(group) for group in (state or {"groups": []})["groups"]]
        for group in self._kept:
            self._stage.emit(group)
