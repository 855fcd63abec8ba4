"""A contestant of `make bench-training`: a process that does one optimiser step on request. Here: how it takes turns,
and the training stage as one. TRL is in contests/training_trl.py."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from contests.training_setup import REFERENCED, config_of, rows_of, start_of


class Turns:
    """One optimiser step each time the parent asks for it."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self._started = 0.0

    def ready(self) -> None:
        """All that may run at the same time as others' start is done."""
        self._tell({})

    def wait(self) -> None:
        if not sys.stdin.readline():
            sys.exit(1)
        self._started = time.perf_counter()

    def done(self, tokens: float) -> None:
        self._tell({"tokens": tokens, "seconds": time.perf_counter() - self._started})

    def finish(self, loss: float, reference: dict[str, float]) -> None:
        self._tell({"loss": loss, **reference})

    def _tell(self, message: dict[str, float]) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()


def stage_of(folder: Path, method: str, precision: str, steps: int, kind: type) -> Any:
    """A stage of the platform with the rows and the start model, of the class `kind`."""
    from steerboard_contracts.stage.inputs import DatasetInput, ModelInput
    from steerboard_contracts.stage.spec import StageSpec
    from steerboard_workers.stages.runtime import EventWriter

    path = str(folder / rows_of(method))
    spec = StageSpec(
        run_id="bench",
        name=method,
        config=config_of(method, precision, steps),
        inputs={
            "model": ModelInput(name="start", path=str(folder / start_of(method)), content_hash=""),
            "data": DatasetInput(name="pairs", path=path, kind="preferences", rows=0, content_hash=""),
        },
    )
    return kind(Path(tempfile.mkdtemp(dir=folder)), spec, EventWriter(os.open(os.devnull, os.O_WRONLY)))


def tokens_read(examples: list[Any]) -> int:
    """What a reference reads: each sequence, and KTO's answers to other prompts."""
    from steerboard_workers.alignment.examples import with_companions

    return sum(example.tokens for example in with_companions(examples))


def run_ours(folder: Path, method: str, precision: str, steps: int) -> None:
    """The training stage as it is; its stage object hands the turn on after each step's metrics."""
    from steerboard_workers.alignment.methods import training_of
    from steerboard_workers.stages import train
    from steerboard_workers.stages.runtime import Stage
    from steerboard_workers.stages.training.data import load_data
    from steerboard_workers.stages.training.setup import open_model

    turns = Turns()
    losses = []

    class PacedStage(Stage):
        def metrics(self, step: int, values: Any) -> None:
            turns.done(values["tokens"])
            if step < steps:
                turns.wait()
            else:
                losses.append(values["eval_loss"])

    stage = stage_of(folder, method, precision, steps, PacedStage)
    turns.ready()
    turns.wait()
    summary = train.run(stage).summary
    reference = {}
    if method in REFERENCED:
        config = stage.spec.config
        start = open_model(folder / start_of(method), config)
        data = load_data(stage_of(folder, method, precision, steps, Stage), training_of(config), start.renderer)
        reference = {
            "reference_seconds": summary["log_prob_seconds"],
            "reference_tokens": tokens_read([*data.train, *data.held_out]),
            "reads": tokens_read(data.train) / sum(example.tokens for example in data.train),
        }
    turns.finish(losses[0], reference)
