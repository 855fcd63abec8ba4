"""What one of the engines answers and scores, as JSON: `python vllm_probe.py ENGINE FOLDER OUT`, by that engine's
Python. FOLDER holds models `policy`, `adapted` and `reward`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from engine_prompts import PROMPTS

from steerboard_contracts.decoding import Decoding
from steerboard_contracts.engine import VllmOptions
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.run_kinds.generate import GenerateConfig
from steerboard_contracts.run_kinds.score import ScoreConfig
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_contracts.stage.spec import StageSpec
from steerboard_workers.engines.protocol import Delta, Request
from steerboard_workers.stages.models.open_models import open_policy, open_reward_model
from steerboard_workers.stages.models.scoring import Scorable, score_texts
from steerboard_workers.stages.runtime import EventWriter, Stage

OPTIONS = {"eager": True}
SAMPLED = Decoding(temperature=0.9, top_p=0.95, top_k=50, n=3, max_new_tokens=12)


def main(engine: str, folder: Path, out: Path) -> None:
    generating = GenerateConfig(engine=engine, batch_size=16, precision="fp32", vllm=OPTIONS)
    scoring = ScoreConfig(engine=engine, vllm=OPTIONS)
    names = ("policy", "adapted", "reward")
    inputs = {name: ModelInput(name=name, path=str(folder / name), content_hash=name) for name in names}
    spec = StageSpec(run_id="probe", name="probe", config=generating, inputs=inputs, threads=1)
    stage = Stage(folder, spec, EventWriter(2))
    asked = [*PROMPTS, *(f"{prompt} Why?" for prompt in PROMPTS[:9]), " ".join(PROMPTS)]
    requests = [Request(row, [{"role": "user", "content": text}]) for row, text in enumerate(asked)]
    document: dict[str, Any] = {}
    with open_policy(stage, "policy", generating) as policy:

        def answers(decoding: Decoding, some: list[Request] = requests, on_delta: Any = None) -> list[Any]:
            made = policy.engine.generate(some, decoding, 7, on_delta)
            return sorted([c.row, c.n, c.text, c.token_ids, c.finished] for c in made)

        streamed: dict[tuple[int, int], str] = {}

        def collect(delta: Delta) -> None:
            streamed[(delta.row, delta.n)] = streamed.get((delta.row, delta.n), "") + delta.text

        document["greedy"] = answers(Decoding(max_new_tokens=40))
        stop = next(text[6:9] for _, _, text, _, _ in document["greedy"] if len(text) > 12)
        document["stopped"] = answers(Decoding(max_new_tokens=40, stop=[stop]), on_delta=collect)
        document["streamed"] = sorted([row, n, text] for (row, n), text in streamed.items())
        document["cut"] = answers(Decoding(max_new_tokens=3))
        document["unlimited"] = answers(Decoding())
        document["greedy_twice"] = answers(Decoding(max_new_tokens=6, n=2))
        document["sampled"] = answers(SAMPLED)
        document["sampled_again"] = answers(SAMPLED)
        document["sampled_shard"] = answers(SAMPLED, requests[1::3])
        try:
            answers(Decoding(max_new_tokens=160))
        except SteerboardError as error:
            document["refused"] = error.code
        if engine == "vllm":
            document["lost"] = lost(policy.engine, requests[:2])
    for option in ({"speculative_tokens": 3}, {"quantisation": "fp8_per_block", "kv_cache": "fp8"}):
        asking = generating.model_copy(update={"vllm": VllmOptions(**OPTIONS, **option)})
        try:
            with open_policy(stage, "policy", asking):
                pass
        except SteerboardError as error:
            document[next(iter(option))] = [error.code, str(error)]
    with open_policy(stage, "policy", generating.model_copy(update={"batch_size": 64})) as policy:
        # Together more tokens than a step of vLLM takes, so that one of them would be read in parts.
        turned = [" ".join((PROMPTS * 3)[row : row + 20]) for row in range(64)]
        long = [Request(row, [{"role": "user", "content": text}]) for row, text in enumerate(turned)]
        made = policy.engine.generate(long, Decoding(temperature=1.0, n=2, max_new_tokens=2), 7)
        document["crowd"] = sorted([c.row, c.n] for c in made)
    with open_policy(stage, "adapted", generating) as policy:
        made = policy.engine.generate(requests, Decoding(max_new_tokens=40), 7)
        document["adapted"] = sorted([c.row, c.n, c.text, c.token_ids, c.finished] for c in made)
    with open_reward_model(stage, "reward", scoring, "fp32") as rewards:
        texts = [Scorable([{"role": "user", "content": a}], b * (1 + i % 5)) for i, (a, b) in enumerate(_pairs())]
        # One that fills the window to its last token.
        texts.append(Scorable([{"role": "user", "content": PROMPTS[0]}], " ".join(PROMPTS)))
        document["rewards"] = score_texts(rewards, texts, 4096)
    out.write_text(json.dumps(document))


class Forgetful:
    """A host of vLLM whose answers never come."""

    def add(self, name: str, prompt: Any, params: Any) -> str:
        return name

    def outputs(self) -> list[Any]:
        return []


def lost(engine: Any, requests: list[Request]) -> str:
    """An engine's error when answers never come."""
    engine._host = Forgetful()
    try:
        list(engine.generate(requests, Decoding(n=2), 7))
    except SteerboardError as error:
        return f"{error.code}: {error.detail}"
    return "nothing"


def _pairs() -> list[tuple[str, str]]:
    return [(prompt, other) for prompt in PROMPTS for other in PROMPTS[:15]]


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
