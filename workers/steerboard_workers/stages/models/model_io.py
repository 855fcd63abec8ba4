"""Model folders: load a policy or a reward model as it was saved (`model_saving`).

A folder holds safetensors, config.json, the tokenizer with its chat template, and steerboard.json.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import safe_open
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

from steerboard_contracts.conditions.chat_templates import (
    chat_template_with_condition,
    plain_chat_template,
    without_condition,
)
from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.errors import BadInput, UnsafeModelFile
from steerboard_contracts.fields import Precision
from steerboard_contracts.models import JUDGES, MODEL_INFO_FILE, SCALARS, ModelInfo, what_to_name
from steerboard_contracts.prompts import TemplateName
from steerboard_contracts.training import TrainingConfig
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.alignment.rendering.templates import Template
from steerboard_workers.stages.models.adapters import BASE, is_adapter, load_weights
from steerboard_workers.stages.models.foreign import check_index, read_json

PICKLES = {".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".h5", ".msgpack", ".npz", ".joblib"}


@dataclass(frozen=True)
class LoadedModel:
    """A model ready for use on `device`, in eval mode, with its folder's description."""

    model: Any
    tokenizer: Any
    info: ModelInfo
    renderer: Renderer
    device: torch.device


Policy = LoadedModel
RewardModel = LoadedModel


def pick_device(device: str = "auto") -> torch.device:
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(device)


def expert_kernels(config: TrainingConfig) -> dict[str, str]:
    """Options of `from_pretrained`. Without any, transformers takes grouped products where torch has them."""
    return {"experts_implementation": "eager"} if config.expert_kernels == "plain" else {}


def pick_dtype(precision: Precision, device: torch.device) -> torch.dtype:
    """`auto`: bf16 on a GPU, fp32 on a CPU, where fp32 is what makes runs repeatable. `fast`: bf16 wherever `device`
    multiplies in it natively."""
    if precision == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    if precision == "fast":
        return torch.bfloat16 if multiplies_bf16(device) else torch.float32
    return torch.bfloat16 if precision == "bf16" else torch.float32


def multiplies_bf16(device: torch.device) -> bool:
    """Whether `device` has instructions for bf16. A CPU without them computes it much more slowly than fp32."""
    if device.type != "cpu":
        return True
    able = torch.cpu.get_capabilities()
    return any(able.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def check_safe(folder: Path) -> None:
    """Raises `UnsafeModelFile` unless the weights are safetensors and transformers itself knows the architecture."""
    if not (folder / "config.json").is_file():
        raise BadInput(
            f"{folder.name} has no config.json", code="unknown_model", hint="Give a folder saved by save_pretrained."
        )
    if not any(folder.glob("*.safetensors")):
        pickles = sorted(p.name for p in folder.iterdir() if p.suffix in PICKLES)
        raise UnsafeModelFile(
            f"{folder.name} has no safetensors weights" + (f", only {', '.join(pickles[:5])}" if pickles else ""),
            hint="Save the model again with safe_serialization=True.",
        )
    check_index(folder)
    model_type = read_json(folder / "config.json").get("model_type")
    try:
        AutoConfig.for_model(str(model_type or ""))
    except ValueError as error:
        raise UnsafeModelFile(
            f"architecture {str(model_type)[:100]!r} is not part of transformers, and code from model folders "
            "is never run",
            hint="Use a model whose architecture transformers supports by itself.",
        ) from error


def dtype_of_weights(folder: Path) -> torch.dtype:
    """The dtype as transformers finds it where config.json names none: that of the first tensor of floating point."""
    for path in sorted((folder / BASE if is_adapter(folder) else folder).glob("*.safetensors")):
        with safe_open(path, "pt") as weights:
            for name in weights.keys():  # noqa: SIM118 - no mapping
                dtype: torch.dtype = weights.get_tensor(name).dtype
                if dtype.is_floating_point:
                    return dtype
    return torch.float32


def load_tokenizer(folder: Path) -> Any:
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    if tokenizer.eos_token_id is None:
        raise BadInput(f"the tokenizer of {folder.name} has no end token", code="unknown_model")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = distinct_pad(tokenizer) or tokenizer.eos_token
    tokenizer.padding_side = "right"
    return tokenizer


def distinct_pad(tokenizer: Any) -> str | None:
    """A token that can serve as padding without being mistaken for the end: reserved ones first, then unk."""
    if tokenizer.pad_token_id is not None and tokenizer.pad_token_id != tokenizer.eos_token_id:
        return str(tokenizer.pad_token)
    taken = {tokenizer.eos_token, tokenizer.bos_token}
    special = [t.content for t in tokenizer.added_tokens_decoder.values() if t.special and t.content not in taken]
    named = [t for t in special if "pad" in t.lower()] + [t for t in special if "reserved" in t.lower()]
    named += [tokenizer.unk_token] if tokenizer.unk_token and tokenizer.unk_token not in taken else []
    return named[0] if named else None


def read_info(folder: Path) -> ModelInfo:
    """The content of steerboard.json, or what can be inferred for a folder without it."""
    path = folder / MODEL_INFO_FILE
    if path.is_file():
        try:
            return ModelInfo.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise BadInput(f"{MODEL_INFO_FILE} of {folder.name} is not valid", code="bad_model_info") from error
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    tokenizer = load_tokenizer(folder)
    architecture = (config.architectures or [config.model_type])[0]
    return ModelInfo(
        role="reward" if "SequenceClassification" in architecture else "base",
        architecture=architecture,
        parameters=0,
        template="chat" if tokenizer.chat_template else "plain",
        max_length=getattr(config, "max_position_embeddings", None) or 2048,
        reward_at="conversation_end",
    )


def load_policy(path: Path | str, precision: Precision = "auto", device: str = "auto") -> Policy:
    """A causal language model in eval mode."""
    return _load(AutoModelForCausalLM, Path(path), precision, device)


def load_reward_model(path: Path | str, precision: Precision = "fp32", device: str = "auto") -> RewardModel:
    """A sequence classifier with one label. Its score is the logit at the last real token.

    Raises `BadInput` (`wrong_role`) for a model that has no such head: one would be made up.
    """
    check_gives_rewards(Path(path))
    return _load(AutoModelForSequenceClassification, Path(path), precision, device)


def load_comparing_model(path: Path | str, precision: Precision = "fp32", device: str = "auto") -> LoadedModel:
    """A causal language model that judges which of two responses is better (role `preference`).

    Raises `BadInput` (`wrong_role`) for others.
    """
    check_safe(Path(path))
    role = read_info(Path(path)).role
    if role != "preference":
        raise BadInput(
            f"{Path(path).name} is a model of role {role}, and was not trained to compare responses",
            code="wrong_role",
            hint=what_to_name(role, ("preference",)),
        )
    return _load(AutoModelForCausalLM, Path(path), precision, device)


def check_gives_rewards(folder: Path) -> None:
    """Raises `BadInput` (`wrong_role`)."""
    check_safe(folder)
    role = read_info(folder).role
    if role not in SCALARS:
        what = "compares two responses" if role == "preference" else f"is of role {role}"
        raise BadInput(
            f"{folder.name} {what}, and cannot score a single one",
            code="wrong_role",
            hint=what_to_name(role, SCALARS & JUDGES),
        )


def _load(kind: Any, folder: Path, precision: Precision, device: str) -> LoadedModel:
    check_safe(folder)
    where = pick_device(device)
    tokenizer = load_tokenizer(folder)
    info = read_info(folder)
    model = load_weights(
        kind, folder, dtype=pick_dtype(precision, where), use_safetensors=True, trust_remote_code=False
    )
    model.to(where).eval()
    return LoadedModel(model, tokenizer, info, renderer_of(tokenizer, info), where)


def renderer_of(tokenizer: Any, info: ModelInfo, window: int | None = None) -> Renderer:
    """What makes the tokens of a model that is used, not trained."""
    whole = info.role in SCALARS and info.reward_at == "conversation_end"
    return Renderer(
        tokenizer,
        info.template,
        window or info.max_length,
        whole=whole,
        condition=info.condition,
        process=info.process,
    )


def set_chat_template(tokenizer: Any, template: TemplateName, condition: ConditionFormat | None) -> None:
    """Make `apply_chat_template` of the folder give what `Renderer.prompt_ids` gives."""
    if template == "plain":
        tokenizer.chat_template = plain_chat_template(condition)
        return
    if isinstance(tokenizer.chat_template, dict):  # by name; the others are for tools or documents
        named = tokenizer.chat_template
        tokenizer.chat_template = tokenizer.get_chat_template()
        set_chat_template(tokenizer, template, condition)
        tokenizer.chat_template = {**named, "default": tokenizer.chat_template}
        return
    tokenizer.chat_template = without_condition(tokenizer.chat_template)
    if condition is not None:
        shape = Template(tokenizer, template).reply_shape
        own = tokenizer.chat_template
        tokenizer.chat_template = chat_template_with_condition(own, condition, shape.lead, shape.dropped)
