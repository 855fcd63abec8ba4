"""What people request of a training run while it is active: a file in the stage's directory, replaced as a whole."""

from __future__ import annotations

from pydantic import BaseModel

from steerboard_contracts.samples import Finite

CONTROL_FILE = "control.json"


class Change(BaseModel):
    """Settings of the config that have other values from optimiser step `step` on; None: from the next one. `number`
    counts the changes of a run from 1."""

    number: int
    values: dict[str, Finite]
    step: int | None = None

    def in_words(self) -> str:
        return ", ".join(f"{name} {value:g}" for name, value in self.values.items())


class Control(BaseModel):
    """`changes` in the order in which they were asked for, those that are in force already included."""

    changes: list[Change] = []
    pause: bool = False
