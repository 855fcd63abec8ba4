"""Whole stages by vLLM's Python give what they give by transformers, or say why not."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hand_pipeline import HandPipeline

from steerboard.platform.processes import vllm
from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.run_kinds.base import BaseModelConfig
from steerboard_contracts.stage.events import STAGE_EVENT, Failed, StageEvent, Succeeded
from steerboard_contracts.stage.inputs import ModelInput, PromptsInput, ResponsesInput
from steerboard_workers.stages.base import random_llama, train_tokenizer
from steerboard_workers.stages.models.model_io import load_policy, load_tokenizer
from steerboard_workers.stages.models.model_saving import save_model
from steerboard_workers.stages.models.score_tokens import add_score_tokens, set_rows, token_ids
from steerboard_workers.synthetic.topics import TOPICS
from support.models.vllm_engine import PYTHON, needs_vllm, write_models
from support.patience import PATIENCE

pytestmark = [needs_vllm, pytest.mark.long]
WORDS = ["red", "green", "blue", "apple", "pear", "house", "tree", "river"]
ID = "01890000-0000-7000-8000-000000000000"
STAGES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "benchmark": ({"run": "benchmark"}, {"pairs": "pairs", "reward": "reward"}),
    "answer": (
        {"run": "answer", "evaluation": ID, "entrant": ID, "decoding": {"max_new_tokens": 12}, "samples": 2},
        {"prompts": "prompts", "model": "policy"},
    ),
    "score": ({"run": "score"}, {"data": "labelled", "reward": "reward"}),
    "reward": (
        {"run": "reward", "evaluation": ID, "assessment": ID},
        {"reward": "reward", "responses": "responses", "preferences": "pairs", "labelled": "labelled"},
    ),
}


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> HandPipeline:
    folder = tmp_path_factory.mktemp("things")
    texts = [f"User: say {word} Assistant: {step}" for word in WORDS for topic in TOPICS for step in topic.steps]
    write_models(folder, train_tokenizer(texts, 600, 160))
    pipeline = HandPipeline(folder, held_out=0.5)
    pairs = [
        {"prompt": f"say {word} {n}", "chosen": f"{word} {word}", "rejected": WORDS[n % 8]}
        for n in range(12)
        for word in WORDS[:5]
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
    responses = [
        {"entrant": "sft", "position": n, "sample": 0, "prompt": prompt["messages"], "response": WORDS[n - 1]}
        for n, prompt in enumerate(prompts)
    ]
    path = folder / "responses.jsonl"
    path.write_text("".join(json.dumps(response) + "\n" for response in responses))
    pipeline.things["responses"] = ResponsesInput(name="responses", path=str(path), responses=len(responses))
    return pipeline


def carried_out(
    things: HandPipeline,
    name: str,
    config: dict[str, Any],
    inputs: dict[str, str],
    **variables: str,
) -> tuple[Path, list[StageEvent]]:
    """The folder of a stage, done by the Python of its engine, and its events."""
    assert PYTHON is not None
    folder = things.prepare(name, {"vllm": {"eager": True}, **config}, inputs)
    by_vllm = config["engine"] == "vllm"
    python = PYTHON if by_vllm else Path(sys.executable)
    done = subprocess.run(
        [python, "-m", "steerboard_workers.stages", folder],
        env={**os.environ, **(vllm.variables(PYTHON, folder) if by_vllm else {}), **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.stdout, done.stderr[-3000:]
    return folder, [STAGE_EVENT.validate_json(line) for line in done.stdout.splitlines()]


def outputs(things: HandPipeline, stage: str, engine: str) -> dict[str, Any]:
    """What the files that a stage makes say, by name."""
    config, inputs = STAGES[stage]
    folder, events = carried_out(things, f"{stage}-{engine}", {**config, "engine": engine}, inputs)
    assert isinstance(events[-1], Succeeded), events[-1]
    return {"said": [output.model_dump() for output in events[-1].outputs]} | {
        path.name: [json.loads(line) for line in path.read_text().splitlines()]
        if path.suffix == ".jsonl"
        else json.loads(path.read_text())
        for path in (folder / "outputs").iterdir()
    }


def failure(
    things: HandPipeline,
    name: str,
    options: dict[str, Any],
    model: str = "policy",
    fields: Any = None,
    **variables: str,
) -> Failed:
    """How a generate stage by vLLM ends that cannot succeed."""
    config = {"run": "generate", "prompts": ["say red"], "engine": "vllm", "vllm": options, **(fields or {})}
    _, events = carried_out(things, name, config, {"model": model}, **variables)
    assert isinstance(events[-1], Failed), events[-1]
    return events[-1]


def same(one: Any, other: Any) -> bool:
    """Equal, except for a thousandth in figures and for times."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, abs_tol=1e-3, rel_tol=0)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all("seconds" in key or same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@pytest.mark.parametrize("stage", list(STAGES))
def test_a_stage_makes_the_same_by_either_engine(things: HandPipeline, stage: str) -> None:
    ours, theirs = outputs(things, stage, "transformers"), outputs(things, stage, "vllm")
    assert set(ours) == set(theirs)
    for name in ours:
        assert same(ours[name], theirs[name]), (ours[name], theirs[name])


def test_attention_heads_that_its_kernels_do_not_know_are_refused_with_what_to_do(things: HandPipeline) -> None:
    tokenizer = load_tokenizer(things.directory / "policy")
    config = BaseModelConfig(source="random:tiny-llama", hidden=64, layers=1, heads=4, max_length=160)
    info = ModelInfo(role="base", architecture="LlamaForCausalLM", parameters=1, template="plain", max_length=160)
    save_model(things.directory / "narrow", random_llama(config, tokenizer), tokenizer, info)
    things.things["narrow"] = ModelInput(name="narrow", path=str(things.directory / "narrow"), content_hash="narrow")
    failed = failure(things, "narrow-heads", {"eager": True}, "narrow")
    assert (failed.code, failed.retryable) == ("engine_refused", False)
    assert "engine: transformers" in (failed.hint or "")


def test_an_engine_that_is_not_up_in_time_has_failed(things: HandPipeline) -> None:
    failed = failure(things, "slow", {"eager": True, "load_seconds": 0.5})
    assert (failed.code, failed.retryable) == ("engine_failed", True)
    assert "was not up within 0.5 seconds" in failed.detail


def test_a_stage_that_fails_ends_though_its_engine_still_runs(things: HandPipeline) -> None:
    """The engine has a process of its own, as on a GPU, for which Python would wait."""
    too_many = {"decoding": {"max_new_tokens": 160}}
    failed = failure(things, "wrong", {"eager": True}, fields=too_many, VLLM_ENABLE_V1_MULTIPROCESSING="1")
    assert failed.code == "too_many_new_tokens"


@pytest.fixture(scope="module")
def asked_by_tokens(things: HandPipeline) -> str:
    """Its vocabulary has grown, and its head prefers the new tokens to all others."""
    form = ConditionFormat.of_score(style="tokens", place="request", words=("red", "green", "blue"))
    policy = load_policy(things.directory / "policy", "fp32", "cpu")
    policy.model.config.num_labels = 2  # of no classifier
    add_score_tokens(policy.tokenizer, form.how)
    set_rows(policy.model, policy.tokenizer, form.how)
    silent = token_ids(policy.tokenizer, form.how)
    with torch.no_grad():
        draw = torch.Generator().manual_seed(0)
        rows = policy.model.get_output_embeddings().weight
        rows[silent] = 3 * torch.randn(rows[silent].shape, generator=draw)
    info = policy.info.model_copy(update={"role": "policy", "condition": form})
    save_model(things.directory / "tokens", policy.model, policy.tokenizer, info)
    things.things["tokens"] = ModelInput(name="tokens", path=str(things.directory / "tokens"), content_hash="tokens")
    return "tokens"


@pytest.mark.parametrize("guidance", [1.0, 2.0])
def test_a_policy_asked_by_tokens_answers_the_same_and_never_with_one(
    things: HandPipeline, asked_by_tokens: str, guidance: float
) -> None:
    decoding = {"max_new_tokens": 12, "guidance": guidance}
    config = {"run": "generate", "prompts": ["say red"], "scores": [-5.0, 0.0, 5.0], "decoding": decoding}
    answers = {}
    for engine in ("transformers", "vllm"):
        name, inputs = f"tokens-{engine}-{guidance:g}", {"model": asked_by_tokens}
        folder, events = carried_out(things, name, {**config, "engine": engine}, inputs)
        assert isinstance(events[-1], Succeeded), events[-1]
        answers[engine] = json.loads((folder / "outputs" / "answers.json").read_text())
    assert answers["vllm"] == answers["transformers"]
    assert all(answer["text"] and "<|" not in answer["text"] for answer in answers["vllm"])
    assert len({answer["text"] for answer in answers["vllm"]}) > 1


def test_an_adapter_with_tokens_is_refused_with_what_to_do(things: HandPipeline) -> None:
    folder = things.directory / "adapted-tokens"
    shutil.copytree(things.directory / "adapted", folder)
    config = json.loads((folder / "adapter_config.json").read_text())
    rows = {"trainable_token_indices": {"embed_tokens": [7]}}
    (folder / "adapter_config.json").write_text(json.dumps({**config, **rows}))
    things.things["adapted-tokens"] = ModelInput(name="adapted-tokens", path=str(folder), content_hash="adapted-tokens")
    failed = failure(things, "adapter-tokens", {"eager": True}, "adapted-tokens")
    assert (failed.code, failed.retryable) == ("engine_refused", False)
    assert "tokens of its own" in failed.detail
