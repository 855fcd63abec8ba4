"""What `make bench-gpu` trains and on what: the rows, the model and the config of every contestant."""

from __future__ import annotations

import json
import os
import random
import tempfile
from pathlib import Path
from typing import Any

TASKS = ("sft", "lora", "qlora", "reward_model", "dpo", "decision_transformer", "generate")
PAIRED = ("reward_model", "dpo")
# What an adapter adds to a task's config.
ADAPTERS: dict[str, dict[str, Any]] = {"lora": {"rank": 16}, "qlora": {"rank": 16, "quantise": "nf4"}}
SIZES: dict[str, dict[str, int]] = {
    "toy": {"hidden": 64, "layers": 2, "heads": 2, "max_length": 256, "rows": 96, "sequences": 8, "words": 60},
    "1b": {"hidden": 2048, "layers": 24, "heads": 16, "max_length": 2048, "rows": 1024, "sequences": 32, "words": 700},
}
STEPS, WARM_STEPS = 8, 3
PROMPTS, NEW_TOKENS = 64, 128
_TEXT = "bread flour water salt yeast oven cake sugar butter eggs sky blue light short waves scatter bake mix"
WORDS = tuple(_TEXT.split())


def prepare(folder: Path, size: str) -> None:
    """rows.jsonl (each a labelled sample and a pair in one) and the start model."""
    import torch

    from steerboard_contracts.models import ModelInfo
    from steerboard_contracts.run_kinds.base import BaseModelConfig
    from steerboard_workers.stages.base import random_llama, train_tokenizer
    from steerboard_workers.stages.models.model_saving import save_model

    shape = SIZES[size]
    draw = random.Random(0)

    def text(most: int) -> str:
        return " ".join(draw.choice(WORDS) for _ in range(draw.randint(most // 4, most)))

    rows = []
    for row in range(shape["rows"]):
        prompt = [{"role": "user", "content": text(shape["words"] // 3)}]
        sides = {"chosen": text(shape["words"]), "rejected": text(shape["words"])}
        about = {"row": row, "split": "held_out" if row % 16 == 0 else "train", "half": "a", "source": "generated"}
        rows.append({"prompt": prompt, **sides, "response": sides["chosen"], "reward": draw.gauss(0, 1), **about})
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tokenizer = train_tokenizer(
        (f"User: {r['prompt'][0]['content']} Assistant: {r['chosen']}" for r in rows), 512, 4096
    )
    config = BaseModelConfig(
        source="random:tiny-llama", **{k: shape[k] for k in ("hidden", "layers", "heads", "max_length")}
    )
    torch.manual_seed(0)
    model = random_llama(config, tokenizer)
    if size != "toy":
        # As large a vocabulary as real models have: the head is a good part of the work.
        model.resize_token_embeddings(32_768, mean_resizing=False)
    model = model.to(torch.bfloat16)
    info = ModelInfo(
        role="base", architecture=type(model).__name__, parameters=_parameters(model), max_length=shape["max_length"]
    )
    save_model(folder / "model", model, tokenizer, info)


def _parameters(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def config_of(task: str, size: str) -> dict[str, Any]:
    shape = SIZES[size]
    return {
        "run": "train",
        "method": "sft" if task in ADAPTERS else task,
        "lora": ADAPTERS.get(task),
        "lr": 1e-5,
        "batch": shape["sequences"] // (2 if task in PAIRED else 1),
        "epochs": 100,
        "max_steps": STEPS,
        "micro_tokens": 8 * shape["max_length"],
        "precision": "bf16",
        "checkpoint_every": 0,
        "checkpoint_seconds": 0,
        "evaluate_rows": 1,
    }


def stage_of(task: str, folder: Path, size: str, kind: type) -> Any:
    from steerboard_contracts.stage.inputs import DatasetInput, ModelInput
    from steerboard_contracts.stage.spec import StageSpec
    from steerboard_workers.stages.runtime import EventWriter

    data = "preferences" if task in PAIRED else "labelled"
    inputs = {
        "model": ModelInput(name="start", path=str(folder / "model"), content_hash=""),
        "data": DatasetInput(name="rows", path=str(folder / "rows.jsonl"), kind=data, rows=0, content_hash=""),
    }
    spec = StageSpec(run_id="bench", name=task, config=config_of(task, size), inputs=inputs)
    return kind(Path(tempfile.mkdtemp(dir=folder)), spec, EventWriter(os.open(os.devnull, os.O_WRONLY)))


def parameters_of(folder: Path) -> int:
    return int(json.loads((folder / "model" / "steerboard.json").read_text())["parameters"])
