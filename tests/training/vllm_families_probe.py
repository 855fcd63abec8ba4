"""The greedy answers of vLLM to one prompt, or why it refuses: `python vllm_families_probe.py FOLDER OUT`, by vLLM's
Python. FOLDER has a folder for each model; OUT is JSON: the ids it answers, or the error's code and text, by model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from steerboard_contracts.decoding import Decoding
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.run_kinds.generate import GenerateConfig
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_contracts.stage.spec import StageSpec
from steerboard_workers.engines.protocol import Request
from steerboard_workers.stages.models.open_models import open_policy
from steerboard_workers.stages.runtime import EventWriter, Stage

PROMPT = [{"role": "user", "content": "Name a colour."}]
NEW_TOKENS = 6


def asked(folder: Path) -> dict[str, Any]:
    config = GenerateConfig(engine="vllm", batch_size=4, precision="fp32", vllm={"eager": True})
    model = ModelInput(name="policy", path=str(folder), content_hash=folder.name)
    spec = StageSpec(run_id="probe", name="probe", config=config, inputs={"policy": model}, threads=1)
    try:
        with open_policy(Stage(folder.parent, spec, EventWriter(2)), "policy", config) as policy:
            decoding = Decoding(temperature=0.0, max_new_tokens=NEW_TOKENS)
            (answer,) = policy.engine.generate([Request(0, PROMPT)], decoding, 0)
            return {"ids": list(answer.token_ids)}
    except SteerboardError as error:
        return {"code": error.code, "detail": str(error)}


if __name__ == "__main__":
    found = {}
    for folder in sorted(Path(sys.argv[1]).iterdir()):
        found[folder.name] = asked(folder)
        Path(sys.argv[2]).write_text(json.dumps(found))
