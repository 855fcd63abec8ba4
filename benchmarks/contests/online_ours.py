"""Our contestant of `make bench-online`: the training stage as it is, with answers that only their limit ends."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

from contests.online_setup import MODEL, ROWS, Sizes, config_of

from steerboard_contracts.engine import EngineName


def run_ours(
    folder: Path, method: str, sizes: Sizes, steps: int, precision: str, engine: EngineName
) -> list[dict[str, float]]:
    """Seconds of each step, by phase, and in all. `engine` samples."""
    from steerboard.platform.processes import vllm
    from steerboard.platform.settings import Settings
    from steerboard_contracts.stage.inputs import DatasetInput, ModelInput
    from steerboard_contracts.stage.spec import EngineProcess, StageSpec
    from steerboard_workers.stages import train
    from steerboard_workers.stages.runtime import EventWriter, Stage
    from steerboard_workers.stages.training.sampling import live_policy

    live_policy.end_ids = lambda *_: set()
    measured: list[dict[str, float]] = []
    began = [time.perf_counter()]

    class Timed(Stage):
        def metrics(self, step: int, values: Any) -> None:
            now = time.perf_counter()
            phases = {k.removesuffix("_seconds"): v for k, v in values.items() if k.endswith("_seconds")}
            measured.append({**phases, "step": now - began[0]})
            began[0] = time.perf_counter()

    sampling = None
    if engine == "vllm":
        python = vllm.require_python(Settings())
        sampling = EngineProcess(python=str(python), variables=vllm.variables(python, folder))
    spec = StageSpec(
        run_id="bench",
        name=method,
        config={**config_of(method, sizes, steps, precision), "engine": engine},
        inputs={
            "model": ModelInput(name="start", path=str(folder / MODEL), content_hash=""),
            "data": DatasetInput(name="prompts", path=str(folder / ROWS), kind="prompts", rows=0, content_hash=""),
        },
        device="cpu",
        vllm=sampling,
    )
    train.run(Timed(Path(tempfile.mkdtemp(dir=folder)), spec, EventWriter(os.open(os.devnull, os.O_WRONLY))))
    return measured
