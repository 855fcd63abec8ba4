"""An adapter's folder as a whole model's: what leaves the platform for programs that know no adapters."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from steerboard_contracts.models import SCALARS
from steerboard_workers.stages.models.adapters import is_adapter, load_weights, merge
from steerboard_workers.stages.models.model_io import check_safe, dtype_of_weights, load_tokenizer, read_info
from steerboard_workers.stages.models.model_saving import save_model
from steerboard_workers.stages.runtime import Stage


def whole_folder(stage: Stage, name: str) -> tuple[Path, bool]:
    """(the folder of input `name` as a whole model's, whether an adapter was merged for it). Raises like
    `write_merged`."""
    folder = stage.model_path(name)
    if not is_adapter(folder):
        return folder, False
    stage.progress(0, 1, "models", "merging")
    with stage.phases.measure("load"), stage.using_model(name, "merging the adapter of"):
        target = stage.directory / "merged"
        write_merged(folder, target)
    stage.progress(1, 1, "models", "merging")
    return target, True


def write_merged(folder: Path, target: Path) -> None:
    """Merged in float32 and saved in the dtype of the base's weights, with tokenizer, template and steerboard.json.

    Raises `BadInput` (`no_lora_targets`) where adapters cannot be merged, `SavedModelDiffers`.
    """
    check_safe(folder)
    info = read_info(folder)
    kind = AutoModelForSequenceClassification if info.role in SCALARS else AutoModelForCausalLM
    model = load_weights(kind, folder, dtype=torch.float32, use_safetensors=True, trust_remote_code=False)
    merge(model)
    model.to(dtype_of_weights(folder))
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    save_model(target, model, load_tokenizer(folder), info.model_copy(update={"lora": None, "parameters": parameters}))
