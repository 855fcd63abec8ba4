"""Model folders: save a model so that it loads the same everywhere."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, GenerationConfig

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.models import MODEL_INFO_FILE, SCALARS, ModelInfo
from steerboard_workers.stages.models.model_io import renderer_of, set_chat_template


class SavedModelDiffers(SteerboardError):
    """A model folder did not reload as what was in memory; nothing may be built on it."""

    code = "saved_model_differs"
    title = "The saved model differs from the trained one"
    retryable = True


def whole_model(like: Any, weights: dict[str, torch.Tensor], dtype: torch.dtype) -> Any:
    """A model of the class and settings of `like`, made of `weights` (by name, tied ones once) without a copy of them.

    They come in `dtype`, except for those that the architecture keeps in float32. Raises `SavedModelDiffers` when they
    are not all that it has.
    """
    with torch.device("meta"):
        model = type(like)._from_config(like.config, dtype=dtype)
    exact = tuple(like._keep_in_fp32_modules_strict or ())
    own = {name: tensor.dtype for name, tensor in model.state_dict().items()}
    for name in weights:
        if any(part in name for part in exact):
            own[name] = torch.float32
    weights = {name: tensor.to(own.get(name, dtype)) for name, tensor in weights.items()}
    report = model.load_state_dict(weights, strict=False, assign=True)
    model.tie_weights()
    if like.can_generate():
        model.generation_config = copy.deepcopy(like.generation_config)
    lost = [name for name in report.missing_keys if model.state_dict()[name].is_meta] + list(report.unexpected_keys)
    if lost:
        raise SavedModelDiffers(f"{len(lost)} tensors were not gathered, such as {lost[0]}")
    return model


def save_model(folder: Path, model: Any, tokenizer: Any, info: ModelInfo) -> None:
    """Write an export-ready folder, then load it back. Raises `SavedModelDiffers` unless every tensor is equal."""
    describe(model, tokenizer, info)
    save_weights(folder, model)
    tokenizer.save_pretrained(folder)
    (folder / MODEL_INFO_FILE).write_text(info.model_dump_json(indent=2) + "\n")
    compare_saved(folder, model)


def save_weights(folder: Path, model: Any) -> None:
    """The weights and the model's config. `save_pretrained` imports DeepSpeed where it is installed, to unwrap its
    engine: seconds and a warning in the log. A model can be such an engine only if DeepSpeed is loaded already."""
    from accelerate.utils import other  # the environment of vLLM, which saves no models, does without

    asked, other.is_deepspeed_available = other.is_deepspeed_available, lambda: "deepspeed" in sys.modules
    try:
        model.save_pretrained(folder)
    finally:
        other.is_deepspeed_available = asked


def describe(model: Any, tokenizer: Any, info: ModelInfo) -> None:
    """Bring the model's and the tokenizer's own settings in line with the registry."""
    set_chat_template(tokenizer, info.template, info.condition)
    if info.role in SCALARS:
        model.config.pad_token_id = tokenizer.pad_token_id  # readers find the last token by it
        return
    # What its makers set stays, such as further end tokens and how it is to be sampled.
    config = copy.deepcopy(model.generation_config) or GenerationConfig()
    own = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
    stops = [
        *dict.fromkeys(stop for stop in (*own, *sorted(renderer_of(tokenizer, info).stop_ids)) if stop is not None)
    ]
    config.suppress_tokens = renderer_of(tokenizer, info).silent_ids or config.suppress_tokens
    config.eos_token_id = stops if len(stops) > 1 else stops[0]
    for name in ("bos_token_id", "pad_token_id"):
        if getattr(config, name) is None:
            setattr(config, name, getattr(tokenizer, name))
    model.generation_config = config


def compare_saved(folder: Path, model: Any) -> None:
    """Load what was written of `model`. Raises `SavedModelDiffers` unless every tensor is equal."""
    kind = (
        AutoModelForSequenceClassification if "SequenceClassification" in type(model).__name__ else AutoModelForCausalLM
    )
    again, report = kind.from_pretrained(folder, dtype=model.dtype, output_loading_info=True, trust_remote_code=False)
    lost = [*report["missing_keys"], *report["unexpected_keys"], *report["mismatched_keys"]]
    if lost:
        raise SavedModelDiffers(f"{len(lost)} tensors were lost in saving, such as {lost[0]}")
    theirs = again.state_dict()
    for name, tensor in model.state_dict().items():
        if not torch.equal(tensor.cpu(), theirs[name]):
            raise SavedModelDiffers(f"tensor {name} reads back differently")
