"""Records what this release stores as JSON for work that waits, for later releases to read.

Run it when a release is made, from the root of the checkout, and commit the file:
    python tests/former_release/record.py > tests/former_release/payloads-VERSION.json
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

from steerboard.datasets.imports.schemas import ImportOptionsOut
from steerboard.evaluation.judges.schemas import JudgeSettings
from steerboard.playground.schemas import PlaygroundDecoding
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.run_config import RUN_CONFIG
from steerboard_contracts.stage.inputs import DatasetInput, ModelInput
from steerboard_contracts.stage.spec import StageSpec

_ID = "01930000-0000-7000-8000-000000000000"
_LORA = {"rank": 8, "alpha": 16.0, "dropout": 0.1, "targets": "attention", "quantise": "none", "merge": False}
_TRAINING = {
    "lr": 1e-4,
    "batch": 16,
    "epochs": 1.5,
    "max_steps": 100,
    "warmup_ratio": 0.1,
    "max_length": 256,
    "micro_batch": 4,
    "precision": "bf16",
    "gradient_checkpointing": True,
    "strategy": "zero3",
    "offload": "all",
    "lora": _LORA,
    "learn": "all",
    "template": "plain",
    "seed": 7,
    "evaluate_every": 10,
}
_VLLM = {"engine": "vllm", "vllm": {"tensor_parallel": 2, "max_model_len": 512, "eager": True}}
_DECODING = {"temperature": 0.7, "top_p": 0.9, "top_k": 50, "n": 2, "max_new_tokens": 64, "stop": ["\n\nHuman:"]}
_METHODS: dict[str, dict[str, Any]] = {
    "sft": {},
    "reward_model": {"centre": 0.01, "use_margin": True, "share_prompt": False, "half": "a"},
    "mle_filter": {"threshold": 0.5},
    "rwr": {"beta": 2.0, "self_normalised": True, "max_weight": None},
    "decision_transformer": {"score_scale": "quantile", "score_step": 0.5, "score_limit": 3.0, "default_score": 3.0},
}
_RUNS: list[dict[str, Any]] = [
    {"run": "base", "source": "random:tiny-llama"},
    {"run": "base", "source": "org/name@main", "fingerprint": "ab"},
    *({"run": "train", "method": method} for method in _METHODS),
    *({"run": "train", "method": method, **_TRAINING, **own} for method, own in _METHODS.items()),
    {"run": "generate", "decoding": _DECODING, "limit": 10, "split": "all", "shards": 2, **_VLLM},
    {"run": "generate", "prompts": ["Hello"], "scores": [5.0, -5.0]},
    {"run": "generate", "endpoint": "server", "score": 5.0},
    {"run": "mix", "parts": [{"share": 0.333}, {"share": "auto", "side": "chosen"}], "size": 100},
    {"run": "score", "shards": 3, **_VLLM},
    {"run": "evaluate", "entrants": [{}, {"scores": [-5.0, 0.0, 5.0]}], "quality": "synthetic"},
    {"run": "benchmark"},
    {"run": "answer", "evaluation": _ID, "entrant": _ID, "prompts_hash": "ab", "temperatures": {"math": 0.0}},
    {"run": "reward", "evaluation": _ID, "assessment": _ID},
    {"run": "judge", "evaluation": _ID, "judge": _ID},
]


def payloads() -> dict[str, list[dict[str, Any]]]:
    normaliser = {"mean": 0.1, "sd": 1.5, "n": 100, "reward_source": "reward", "reward_model_hash": "ef"}
    dataset = {"name": "data", "path": "data.jsonl", "kind": "labelled", "rows": 9, "content_hash": "ab"}
    model = {"name": "sft", "path": "model", "content_hash": "cd"}
    policy = {"role": "policy", "method": "decision_transformer", "architecture": "LlamaForCausalLM"}
    sizes = {"parameters": 1000, "max_length": 512, "lora": _LORA, "lineage": {"parent": "ab"}}
    spec = StageSpec(
        run_id=_ID,
        attempt=2,
        name="dt",
        config=RUN_CONFIG.validate_python({"run": "train", "method": "decision_transformer"}),
        inputs={
            "data": DatasetInput.model_validate({**dataset, "normaliser": normaliser}),
            "model": ModelInput.model_validate(model),
        },
        threads=2,
    )
    stored: dict[str, list[BaseModel]] = {
        "run_configs": [RUN_CONFIG.validate_python(run) for run in _RUNS],
        "stage_specs": [spec],
        "normalisers": [Normaliser.model_validate(normaliser)],
        "model_info": [ModelInfo.model_validate({**policy, **sizes, "normaliser": normaliser})],
        "import_options": [
            ImportOptionsOut(),
            ImportOptionsOut.model_validate(
                {"kind": "preferences", "mapping": {"chosen": "best", "margin": None}, "bad_rows": "skip"}
            ),
        ],
        "judge_settings": [
            JudgeSettings(),
            JudgeSettings.model_validate(
                {"entrants": ["a", "b"], "baseline": "a", "temperature": 0.5, "criteria": "x"}
            ),
        ],
        "playground_decoding": [
            PlaygroundDecoding(),
            PlaygroundDecoding.model_validate({"temperature": 0.5, "max_new_tokens": 16}),
        ],
    }
    return {name: [value.model_dump(mode="json") for value in values] for name, values in stored.items()}


if __name__ == "__main__":
    print(json.dumps(payloads(), indent=1, sort_keys=True))
