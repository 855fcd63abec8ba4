"""The greedy answer of vLLM to one prompt, or why it refuses: `python vllm_families_probe.py FOLDER OUT`, by vLLM's
Python. FOLDER is a model; the ids of the answer, or the error's code and text, are written to OUT as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

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


def main(folder: Path, out: Path) -> None:
    config = GenerateConfig(engine="vllm", batch_size=4, precision="fp32", vllm={"eager": True})
    model = ModelInput(name="policy", path=str(folder), content_hash=folder.name)
    spec = StageSpec(run_id="probe", name="probe", config=config, inputs={"policy": model}, threads=1)
    try:
        with open_policy(Stage(folder.parent, spec, EventWriter(2)), "policy", config) as policy:
            decoding = Decoding(temperature=0.0, max_new_tokens=NEW_TOKENS)
            (answer,) = policy.engine.generate([Request(0, PROMPT)], decoding, 0)
            said = {"ids": list(answer.token_ids)}
    except SteerboardError as error:
        said = {"code": error.code, "detail": str(error)}
    out.write_text(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
