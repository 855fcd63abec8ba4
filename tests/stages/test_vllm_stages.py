"""Whole stages by vLLM's Python give what they give by transformers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hand_pipeline import HandPipeline

from steerboard.platform import vllm
from steerboard_contracts.configs import RUN_CONFIG
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.stage import ModelInput, PromptsInput, StageSpec
from steerboard_workers.stages.base import train_tokenizer
from steerboard_workers.synthetic.topics import TOPICS
from vllm_engine import PYTHON, needs_vllm, write_models

pytestmark = [needs_vllm, pytest.mark.long, pytest.mark.timeout(600)]
WORDS = ["red", "green", "blue", "apple", "pear", "house", "tree", "river"]
ID = "01890000-0000-7000-8000-000000000000"
STAGES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "evaluate": (
        {"run": "evaluate", "entrants": [{}], "prompts": 12, "decoding": {"max_new_tokens": 12}},
        {
            "data": "pairs",
            "preferences": "pairs",
            "labelled": "labelled",
            "entrants.0": "policy",
            "rewards.0": "reward",
        },
    ),
    "benchmark": ({"run": "benchmark"}, {"pairs": "pairs", "reward": "reward"}),
    "answer": (
        {"run": "answer", "evaluation": ID, "entrant": ID, "decoding": {"max_new_tokens": 12}, "samples": 2},
        {"prompts": "prompts", "model": "policy"},
    ),
}


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> HandPipeline:
    folder = tmp_path_factory.mktemp("things")
    texts = [f"User: say {word} Assistant: {step}" for word in WORDS for topic in TOPICS for step in topic.steps]
    write_models(folder, train_tokenizer(texts, 600, 160))
    pipeline = HandPipeline(folder, held_out=0.5)
    pairs = [
        {"prompt": f"say {one} {n}", "chosen": f"{one} {one}", "rejected": WORDS[n % 8]}
        for n in range(12)
        for one in WORDS[:5]
    ]
    pipeline.dataset("pairs", "preferences", pairs)
    labelled = [{"prompt": p["prompt"], "response": p["chosen"], "reward": float(n % 7)} for n, p in enumerate(pairs)]
    normaliser = Normaliser.fit([row["reward"] for row in labelled], "elsewhere", "elsewhere")
    pipeline.dataset("labelled", "labelled", labelled, normaliser)
    for name in ("policy", "reward"):
        pipeline.things[name] = ModelInput(name=name, path=str(folder / name), content_hash=name)
    prompts = [
        {"position": n, "category": None, "messages": [{"role": "user", "content": f"say {word}"}], "follow_ups": ["?"]}
        for n, word in enumerate(WORDS)
    ]
    path = folder / "prompts.jsonl"
    path.write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts))
    pipeline.things["prompts"] = PromptsInput(name="prompts", path=str(path), prompts=len(prompts))
    return pipeline


def outputs(things: HandPipeline, stage: str, engine: str) -> dict[str, str]:
    """The files that a stage makes, by name."""
    assert PYTHON is not None
    config, inputs = STAGES[stage]
    folder = things.directory / f"{stage}-{engine}"
    folder.mkdir()
    spec = StageSpec(
        run_id=stage,
        name=stage,
        config=RUN_CONFIG.validate_python({**config, "engine": engine, "vllm": {"eager": True}}),
        inputs={name: things.things[thing] for name, thing in inputs.items()},
        threads=1,
    )
    (folder / "stage.json").write_text(spec.model_dump_json())
    python, variables = (PYTHON, vllm.variables(PYTHON, folder)) if engine == "vllm" else (Path(sys.executable), {})
    command = [python, "-m", "steerboard_workers.stages", folder]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return {path.name: path.read_text() for path in (folder / "outputs").iterdir()}


def rounded(value: Any) -> Any:
    """Figures to two places, and without what a clock measured."""
    if isinstance(value, float):
        return round(value, 2)
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items() if "seconds" not in key}
    return [rounded(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("stage", list(STAGES))
def test_a_stage_makes_the_same_by_either_engine(things: HandPipeline, stage: str) -> None:
    ours, theirs = outputs(things, stage, "transformers"), outputs(things, stage, "vllm")
    assert set(ours) == set(theirs)
    for name in ours:
        one, other = (
            [json.loads(line) for line in made[name].splitlines()] if name.endswith("jsonl") else json.loads(made[name])
            for made in (ours, theirs)
        )
        assert rounded(other) == rounded(one)
