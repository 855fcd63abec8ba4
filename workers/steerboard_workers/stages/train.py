"""The training stage: SFT, reward model, MLE with filtering, RWR, Decision Transformer.

Read top to bottom: open the start model, render the data, set the parts up, train, save a folder that loads anywhere.
"""

from __future__ import annotations

import copy
import hashlib
import json
from typing import Any

import torch
from accelerate import Accelerator

from steerboard_contracts.configs import (
    DecisionTransformerConfig,
    MleFilterConfig,
    RewardModelConfig,
    RwrConfig,
    SftConfig,
)
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.stage import DatasetInput, ModelInput, ModelOutput, Succeeded
from steerboard_workers.alignment.examples import Example
from steerboard_workers.stages.loading import pick_device, pick_dtype, save_model
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.checkpoints import Checkpoints
from steerboard_workers.stages.training.data import TrainingData, load_data
from steerboard_workers.stages.training.loop import Trainer
from steerboard_workers.stages.training.setup import Setup, batcher_of, objective_of, open_model

MethodConfig = SftConfig | RewardModelConfig | MleFilterConfig | RwrConfig | DecisionTransformerConfig


def run(stage: Stage) -> Succeeded:
    config = stage.spec.config
    assert isinstance(config, MethodConfig)
    device = pick_device(stage.spec.device)
    mixed = pick_dtype(config.precision, device) is torch.bfloat16
    accelerator = Accelerator(mixed_precision="bf16" if mixed else "no", cpu=device.type == "cpu")

    stage.progress(0, 1, "models", "loading")
    start = open_model(stage.model_path("model"), config)
    stage.progress(1, 1, "models", "loading")
    data = load_data(stage, config, start.renderer)

    module = start.module().to(accelerator.device)
    batcher = batcher_of(stage, config, module, data.train, start.tokenizer.pad_token_id, accelerator.device)
    checkpoints = Checkpoints(stage.checkpoints, stage.spec.attempt, signature(stage), stage.log)
    trainer = Trainer(stage, config, accelerator, module, objective_of(config), batcher, data, checkpoints)
    evaluated = trainer.run()

    summary = _summary(config, data, trainer, evaluated)
    if accelerator.is_main_process:
        _save(stage, config, start, data, summary)
    accelerator.wait_for_everyone()
    accelerator.end_training()
    return Succeeded(outputs=[ModelOutput(path=stage.output_path("model"), role=start.role)], summary=summary)


def signature(stage: Stage) -> str:
    """Names config and input contents: only a checkpoint of these may be resumed."""
    inputs = {
        name: item.content_hash
        for name, item in sorted(stage.spec.inputs.items())
        if isinstance(item, DatasetInput | ModelInput)
    }
    identity = json.dumps({"config": stage.spec.config.model_dump(mode="json"), "inputs": inputs}, sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()


def _summary(config: MethodConfig, data: TrainingData, trainer: Trainer, evaluated: dict[str, float]) -> dict[str, Any]:
    final = trainer.progress.history[-1]["values"] if trainer.progress.history else {}
    summary = {"steps": trainer.progress.step, "loss": final.get("loss"), **data.summary}
    summary |= {f"eval_{name}": value for name, value in evaluated.items()}
    summary["tokens"] = _tokens(data.train)
    if isinstance(config, RewardModelConfig):
        summary |= {"held_out_accuracy": evaluated.get("pair_accuracy"), "pairs": len(data.held_out)}
    return summary


def _tokens(examples: list[Example]) -> int:
    return sum(e.tokens for e in examples)


def _save(stage: Stage, config: MethodConfig, start: Setup, data: TrainingData, summary: dict[str, Any]) -> None:
    stage.progress(0, 1, "models", "saving")
    model = start.model
    if start.stored is not torch.float32:
        model = copy.deepcopy(model).to(start.stored)
    source = start.info
    lineage = {"parent": stage.model("model").content_hash, "data": stage.dataset("data").content_hash}
    info = ModelInfo(
        role=start.role,
        method=config.method,
        architecture=type(model).__name__,
        parameters=sum(p.numel() for p in model.parameters()),
        template=source.template,
        max_length=start.renderer.max_length,
        lineage=lineage,
        summary={k: v for k, v in summary.items() if isinstance(v, float | int | str) or v is None},
        **data.info,
    )
    if info.normaliser is not None and info.normaliser.reward_model_hash:
        info.lineage["reward_model"] = info.normaliser.reward_model_hash
    with stage.output_folder("model") as folder:
        save_model(folder, model, start.tokenizer, info)
    stage.progress(1, 1, "models", "saving")
