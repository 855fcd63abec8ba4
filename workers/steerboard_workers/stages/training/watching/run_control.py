"""What people ask of a run while it trains, read before each step: a pause, and settings that change from it on.

A change keeps the step at which it came into force, with checkpoints and with the platform. So an attempt that resumes
before that step changes the settings at exactly this step again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from steerboard_contracts.stage.events import Changed
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.watching.control import CONTROL_FILE, Change, Control
from steerboard_workers.stages.runtime import Stage


class RunControl:
    """Every process of a run has one. `share` gives all of them what the main process has; `apply` takes the config
    that is in force from the next step on."""

    def __init__(self, stage: Stage, config: TrainingConfig, apply: Callable[[TrainingConfig], None]) -> None:
        self._stage = stage
        self._config = config
        self._apply = apply
        self.applied: list[Change] = []

    def before(self, step: int, share: Callable[[Any], Any]) -> bool:
        """Bring what is due at optimiser step `step`, counted from 1, into force. Returns whether to pause instead of
        taking it; then nothing changes."""
        control: Control = share(self._read())
        if control.pause:
            return True
        known = {change.number for change in self.applied}
        for change in control.changes:
            if change.number not in known and (change.step is None or change.step <= step):
                self._take(change.model_copy(update={"step": step}))
        return False

    def _take(self, change: Change) -> None:
        assert change.step is not None
        self.applied.append(change)
        self._config = self._config.model_copy(update=change.values)
        self._apply(self._config)
        self._stage.emit(Changed(number=change.number, step=change.step, values=change.values))
        self._stage.log(f"{change.in_words()} from step {change.step} on")

    def _read(self) -> Control:
        """Renamed into place as a whole; of a stage that is run by hand there is none."""
        try:
            return Control.model_validate_json((self._stage.directory / CONTROL_FILE).read_bytes())
        except FileNotFoundError:
            return Control()
        except (OSError, ValidationError) as error:
            self._stage.log(f"{CONTROL_FILE} is not read: {type(error).__name__}", "warning")
            return Control()

    def in_words(self) -> str:
        """The changes for the lineage of what comes out; empty where nothing was changed."""
        return "; ".join(f"{change.in_words()} from step {change.step}" for change in self.applied)

    # -- across attempts ------------------------------------------------------------------------------------------

    def state(self) -> list[dict[str, Any]]:
        """The state for a checkpoint's record."""
        return [change.model_dump(mode="json") for change in self.applied]

    def restore(self, state: list[Mapping[str, Any]]) -> None:
        """Called on every process: what was in force at the checkpoint is again."""
        for change in state:
            self._take(Change.model_validate(change))
