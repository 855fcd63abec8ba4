"""One engine's speed, in a process of its own: `python engine_speed.py ENGINE FOLDER PROMPTS`, by the engine's Python.

Writes FOLDER/ENGINE.json: generated tokens/s of greedy and of sampled answers. Loading and a first batch do not count.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scaling.models import BATCH, NEW_TOKENS, PROMPTS
from steerboard_contracts.decoding import Decoding
from steerboard_contracts.run_kinds.generate import GenerateConfig
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_contracts.stage.spec import StageSpec
from steerboard_workers.engines.protocol import Request
from steerboard_workers.stages.models.open_models import open_policy
from steerboard_workers.stages.runtime import EventWriter, Stage


def main(engine: str, folder: Path, prompts: int) -> None:
    config = GenerateConfig(engine=engine, batch_size=BATCH, precision="fp32")
    policy = ModelInput(name="policy", path=str(folder / "policy"), content_hash="policy")
    spec = StageSpec(run_id="scale", name="scale", config=config, inputs={"model": policy})
    requests = [Request(row, [{"role": "user", "content": text}]) for row, text in enumerate(PROMPTS[:prompts])]
    speeds = {}
    with open_policy(Stage(folder, spec, EventWriter(2)), "model", config) as opened:
        list(opened.engine.generate(requests[:BATCH], Decoding(max_new_tokens=NEW_TOKENS), 1))
        for name, temperature in (("greedy", 0.0), ("sampled", 1.0)):
            decoding = Decoding(temperature=temperature, max_new_tokens=NEW_TOKENS)
            began = time.perf_counter()
            tokens = sum(c.tokens for c in opened.engine.generate(requests, decoding, 0))
            speeds[name] = tokens / (time.perf_counter() - began)
    (folder / f"{engine}.json").write_text(json.dumps(speeds))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
