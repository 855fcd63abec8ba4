"""The training stage: SFT, reward model, MLE with filtering, RWR, Decision Transformer.

Read top to bottom: open the start model, render the data, set the parts up, train, save a folder that loads anywhere.
"""

from __future__ import annotations

import hashlib
import json
import traceback
from typing import Any

from steerboard_contracts.configs import HOW_FIELDS
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.stage import DatasetInput, ModelInput, ModelOutput, Succeeded
from steerboard_contracts.training import (
    DecisionTransformerConfig,
    MleFilterConfig,
    RewardModelConfig,
    RwrConfig,
    SftConfig,
)
from steerboard_workers.alignment.examples import Example
from steerboard_workers.stages.memory_signs import first_line, ran_out_of_memory
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.checkpoints import Checkpoints
from steerboard_workers.stages.training.data import TrainingData, load_data
from steerboard_workers.stages.training.loop import Trainer
from steerboard_workers.stages.training.preflight import Preflight
from steerboard_workers.stages.training.saving import SavedModel
from steerboard_workers.stages.training.setup import Setup, batcher_of, objective_of, open_model
from steerboard_workers.stages.training.sharing import Sharing, sharing_of

MethodConfig = SftConfig | RewardModelConfig | MleFilterConfig | RwrConfig | DecisionTransformerConfig


def run(stage: Stage) -> Succeeded:
    config = stage.spec.config
    assert isinstance(config, MethodConfig)
    stage.progress(0, 1, "models", "loading")
    sharing = sharing_of(config, stage.spec.device)
    with sharing.loading():
        start = open_model(stage.model_path("model"), config, sharing.dtype, sharing.accelerator.device)
    stage.progress(1, 1, "models", "loading")
    data = load_data(stage, config, start.renderer)

    module = start.module()
    sharing.share(module)
    device = sharing.accelerator.device
    batcher = batcher_of(stage, config, module, data.train, start.tokenizer.pad_token_id, device, sharing.module)
    checkpoints = Checkpoints(stage.checkpoints, stage.spec.attempt, signature(stage), stage.log)
    trainer = Trainer(stage, config, sharing, objective_of(config), batcher, data, checkpoints)
    preflight = Preflight(stage, config, trainer, batcher, start)
    memory = preflight.check()
    try:
        evaluated = trainer.run()
    except Exception as error:
        if not ran_out_of_memory(error):
            raise
        # What its frames hold of the step that failed must be free when smaller ones are tried.
        traceback.clear_frames(error.__traceback__)
        raise preflight.error(first_line(error)) from error

    summary = _summary(config, data, trainer, evaluated)
    # Others than the main process end meanwhile: no collective would wait for as long as a large model's writing takes.
    _save(stage, config, start, sharing, data, summary)
    sharing.accelerator.end_training()
    # Not part of the model: equal runs make equal folders, whatever memory they found.
    outputs = [ModelOutput(path=stage.output_path("model"), role=start.role)]
    return Succeeded(outputs=outputs, summary=summary | memory)


def signature(stage: Stage) -> str:
    """Names config, but for how the work is cut up, and inputs: only a checkpoint of these may be resumed."""
    inputs = {
        name: item.content_hash
        for name, item in sorted(stage.spec.inputs.items())
        if isinstance(item, DatasetInput | ModelInput)
    }
    config = stage.spec.config.model_dump(mode="json", exclude=set(HOW_FIELDS))
    identity = json.dumps({"config": config, "inputs": inputs}, sort_keys=True)
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


def _save(
    stage: Stage, config: MethodConfig, start: Setup, sharing: Sharing, data: TrainingData, summary: dict[str, Any]
) -> None:
    """Every process takes part in gathering the weights; the main one writes them."""
    stage.progress(0, 1, "models", "saving")
    writer = SavedModel(start, config, stage.model_path("model"))
    main = sharing.accelerator.is_main_process
    weights = {name: tensor.to("cpu") for name, tensor in sharing.whole(writer.trained_only) if main}
    if not main:
        return
    lineage = {"parent": stage.model("model").content_hash, "data": stage.dataset("data").content_hash}
    info = ModelInfo(
        role=start.role,
        method=config.method,
        architecture=type(start.model).__name__,
        parameters=writer.parameters,
        template=start.info.template,
        max_length=start.renderer.max_length,
        lora=config.lora if writer.is_adapter else None,
        lineage=lineage,
        summary={k: v for k, v in summary.items() if isinstance(v, float | int | str) or v is None},
        **data.info,
    )
    if info.normaliser is not None and info.normaliser.reward_model_hash:
        info.lineage["reward_model"] = info.normaliser.reward_model_hash
    with stage.output_folder("model") as folder:
        writer.write(folder, weights, info)
    stage.progress(1, 1, "models", "saving")
