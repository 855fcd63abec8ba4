"""What one of the engines answers with guidance, as JSON: `python vllm_guidance_probe.py ENGINE FOLDER OUT`, by that
engine's Python. FOLDER holds models `policy` and `adapted`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from engine_prompts import PROMPTS

from steerboard_contracts.decoding import Decoding
from steerboard_contracts.run_kinds.generate import GenerateConfig
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_contracts.stage.spec import StageSpec
from steerboard_workers.engines.protocol import Request
from steerboard_workers.stages.models.open_models import open_policy
from steerboard_workers.stages.runtime import EventWriter, Stage

SCORES = ("5.00", "-5.00", "0.10")
SAMPLED = {"temperature": 0.9, "top_p": 0.95, "top_k": 50, "n": 3, "max_new_tokens": 12, "guidance": 2.5}


def main(engine: str, folder: Path, out: Path) -> None:
    inputs = {name: ModelInput(name=name, path=str(folder / name), content_hash=name) for name in ("policy", "adapted")}
    requests = [
        Request(row, [{"role": "user", "content": text}], SCORES[row % 3])
        for row, text in enumerate([*PROMPTS, " ".join(PROMPTS)])
    ]
    document: dict[str, Any] = {}

    def opened(name: str, guidance: float, batch_size: int = 8) -> Any:
        config = GenerateConfig(
            engine=engine,
            batch_size=batch_size,
            precision="fp32",
            vllm={"eager": True},
            decoding={"guidance": guidance},
        )
        spec = StageSpec(run_id="probe", name="probe", config=config, inputs=inputs, threads=1)
        return open_policy(Stage(folder, spec, EventWriter(2)), name, config)

    def answers(policy: Any, some: list[Request] = requests, **decoding: Any) -> list[Any]:
        made = policy.engine.generate(some, Decoding(**decoding), 7)
        return sorted([c.row, c.n, c.text, c.token_ids, c.finished] for c in made)

    with opened("policy", 3.0) as policy:
        for guidance in (0.0, 0.5, 3.0):
            document[f"greedy_{guidance:g}"] = answers(policy, max_new_tokens=40, guidance=guidance)
        stop = next(text[6:9] for _, _, text, _, _ in document["greedy_3"] if len(text) > 12)
        document["stopped"] = answers(policy, max_new_tokens=40, guidance=3.0, stop=[stop])
        document["unlimited"] = answers(policy, requests[-8:], guidance=3.0)
        document["sampled"] = answers(policy, **SAMPLED)
        document["sampled_shard"] = answers(policy, requests[1::3], **SAMPLED)
        # A host that may guide answers plain requests as any other.
        document["unguided"] = answers(policy, max_new_tokens=40)
    with opened("adapted", 1.5) as policy:
        document["adapted"] = answers(policy, max_new_tokens=40, guidance=1.5)
    out.write_text(json.dumps(document))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
