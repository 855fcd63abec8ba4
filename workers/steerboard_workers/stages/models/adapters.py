"""LoRA adapters (arXiv 2106.09685) by peft: put into a model, written with its base, read back, merged.

An adapter's folder loads as it is with peft, too:
    adapter_config.json, adapter_model.safetensors    what was trained; a reward model's head and the rows of tokens
                                                      that were added among it
    config.json, tokenizer, steerboard.json           of the adapted model
    base/                                             the model below it, whole and unchanged
The store keeps files by content, so a base costs its space once however many adapters name it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoConfig, GenerationConfig
from transformers.utils import GENERATION_CONFIG_NAME

from steerboard_contracts.errors import BadInput
from steerboard_contracts.lora import LoraConfig
from steerboard_workers.stages.models.adapted_layers import (
    ADAPTER,
    HEAD,
    check,
    check_merges,
    inject,
    lora_layers,
    peft_config,
)
from steerboard_workers.stages.models.expert_adapters import (
    ExpertAdapter,
    expert_modules,
    plain_name,
    wrappers,
)
from steerboard_workers.stages.models.norms import fuse_norms

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
BASE = "base"
# By this bitsandbytes repacks a layer's 4-bit weights on some processors, at the first evaluation. What is packed
# passes no gradient on, and the layers below would learn nonsense.
_PACKS = "support_avx512bf16_for_cpu"
# How peft names the adapted model's tensors in a file.
_PREFIX = "base_model.model."
# What DoRA learns of each row of a matrix: its norm. Peft leaves the end of its name out in a file.
_NORMS = ".lora_magnitude_vector."
# Where peft keeps rows of embeddings, and the embeddings below them.
_ROWS, _TOKEN_BASE = ".token_adapter.trainable_tokens_delta.", ".token_adapter.base_layer."
_BASE_FILES = ("*.safetensors", "*.json", "*.model", "*.txt", "*.jinja", "*.tiktoken")


def is_adapter(folder: Path) -> bool:
    return (folder / CONFIG).is_file()


def load_weights(kind: Any, folder: Path, **options: Any) -> Any:
    """A model of the folder, whole or with its adapter's layers, not merged. `options` are `from_pretrained`'s."""
    model = _adapted(kind, folder, **options) if is_adapter(folder) else kind.from_pretrained(folder, **options)
    fuse_norms(model)
    return model


def _adapted(kind: Any, folder: Path, **options: Any) -> Any:
    labels = {"num_labels": options.pop("num_labels")} if "num_labels" in options else {}
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False, **labels)
    model = kind.from_pretrained(folder / BASE, config=config, **options)
    from peft import LoraConfig as PeftConfig

    adapter = PeftConfig.from_pretrained(folder)
    whole = tuple(adapter.modules_to_save or ())
    inject(model, adapter)
    _fill(model, load_file(folder / WEIGHTS), whole)
    if model.can_generate() and (folder / GENERATION_CONFIG_NAME).is_file():
        model.generation_config = GenerationConfig.from_pretrained(folder)
    return model


def quantisation(lora: LoraConfig, compute: torch.dtype, device: torch.device) -> dict[str, Any]:
    """Options of `from_pretrained` for a base in 4-bit NormalFloat with doubly quantised constants, arXiv 2305.14314.

    Raises `BadInput` (`quantisation_missing`) without bitsandbytes.
    """
    if lora.quantise == "none":
        return {}
    if importlib.util.find_spec("bitsandbytes") is None:
        raise BadInput(
            "quantise: nf4 needs bitsandbytes, which is not installed on this worker",
            code="quantisation_missing",
            hint="On the worker: pip install 'steerboard[quantised]'. Or train without quantise.",
        )
    from transformers import BitsAndBytesConfig

    how = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type=lora.quantise,
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=compute,
    )
    return {"quantization_config": how, "device_map": {"": device}}


def add_lora(model: Any, lora: LoraConfig, head: bool, seed: int, tokens: Sequence[int] = ()) -> None:
    """Add fresh adapters to the linear layers of `model`, and train nothing else except the `head` and the rows of
    `tokens` in the embeddings and the LM head if asked. On every process they start from the same draw.

    Raises `BadInput` (`no_lora_targets`) for a model without such layers, or with adapters that cannot be merged, and
    (`bad_score_tokens`) where rows cannot be trained.
    """
    if tokens and getattr(model.get_output_embeddings(), "bias", None) is not None:
        raise BadInput(
            f"LoRA cannot train tokens of {type(model).__name__}: its head has a bias, which peft would leave out",
            code="bad_score_tokens",
            hint="Use score_style: words, or train without lora.",
        )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        inject(model, peft_config(model, lora, head, tokens))
    check(model, lora)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(is_adapted(name) or (head and name == f"{HEAD}.weight"))
    for layer in model.modules():
        if hasattr(layer, _PACKS):
            setattr(layer, _PACKS, False)


def keep_bf16(model: Any) -> None:
    """Frozen matrices that came in bf16 stay in it, for training under autocast: it would round each back to what it
    was, in every pass, and hold both. Experts, which autocast may leave alone, then compute in bf16 as all else does.
    Adapters stay in float32, and so do experts that have some: small updates would be lost in the sum."""
    adapted = {id(layer.get_base_layer()) for _, layer in wrappers(model)}
    experts = {id(module) for module in expert_modules(model)} - adapted
    for layer in model.modules():
        if isinstance(layer, nn.Linear | nn.Embedding) or id(layer) in experts:
            for parameter in layer.parameters(recurse=False):
                if parameter.dtype is torch.float32 and not parameter.requires_grad:
                    parameter.data = parameter.data.to(torch.bfloat16)


def leave_casts_to_autocast(model: Any) -> None:
    """Peft's adapters take their input to float32, from which autocast takes it back: a third of their time."""
    for _, layer in lora_layers(model):
        layer.cast_input_dtype_enabled = False


def is_adapted(name: str) -> bool:
    """Whether a parameter belongs to an adapter."""
    return any(part in name for part in (".lora_A.", ".lora_B.", _NORMS, _ROWS))


def merge(model: Any) -> None:
    """Fold the adapters into the weights; what is left is a plain model, all of which can learn. Raises `BadInput`
    (`no_lora_targets`)."""
    check_merges(model)
    nested = {name for name, _ in wrappers(model) if name != plain_name(name)}
    for name, layer in lora_layers(model):
        layer.merge()
        if name in nested:
            continue
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent) if parent else model, child, layer.get_base_layer())
    for name, layer in _token_layers(model):
        layer.token_adapter.merge()
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent) if parent else model, child, layer.original_module)
    model.requires_grad_(True)


def merged_weights(
    weights: dict[str, Tensor],
    lora: LoraConfig,
    tokens: Sequence[int] = (),
    experts: Sequence[ExpertAdapter] = (),
) -> dict[str, Tensor]:
    """Tensors of the plain model in float32: W' = W + scale B A (Eq. 3 of arXiv 2106.09685), with DoRA m W' / |W'|
    where |W'| are the norms of its rows (Eq. 5 of arXiv 2402.09353), and the rows of `tokens` where they were
    trained. `experts`: the adapters that are of experts."""
    plain = {}
    wrapped = {adapter.stored: adapter for adapter in experts}
    for name, tensor in weights.items():
        if is_adapted(name):
            continue
        if name in wrapped:
            plain[wrapped[name].parameter] = wrapped[name].merged(weights)
            continue
        if _TOKEN_BASE in name:
            layer, _, what = name.rpartition(_TOKEN_BASE)
            if what == "weight":
                tensor = tensor.clone()
                tensor[list(tokens)] = weights[f"{layer}{_ROWS}{ADAPTER}"].to(tensor.dtype)
            plain[f"{layer}.{what}"] = tensor
            continue
        if ".base_layer." not in name or any(name.startswith(f"{adapter.layer}.") for adapter in experts):
            plain[plain_name(name)] = tensor
            continue
        layer, _, what = name.rpartition(".base_layer.")
        if what == "weight":
            a, b = (weights[f"{layer}.lora_{x}.{ADAPTER}.weight"].float() for x in "AB")
            tensor = tensor.float() + (b @ a) * lora.scale
            if lora.dora:
                norms = weights[f"{layer}{_NORMS}{ADAPTER}.weight"].float()
                tensor = tensor * (norms / tensor.norm(dim=1))[:, None]
        plain[f"{layer}.{what}"] = tensor
    return plain


def base_weights(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of the model below the adapters."""
    plain = {name.replace(_TOKEN_BASE, "."): tensor for name, tensor in weights.items() if not is_adapted(name)}
    return {plain_name(name): tensor for name, tensor in plain.items()}


def below_adapters(plain: Iterable[tuple[str, Tensor]], trained: Iterable[str]) -> dict[str, Tensor]:
    """Tensors of a plain model by their names in one with adapters, whose `trained` tensors are called so."""
    names = list(trained)
    adapted = {name.partition(".lora_A.")[0] for name in names if ".lora_A." in name}
    rows = {name.partition(_ROWS)[0] for name in names if _ROWS in name}
    tensors = {}
    for name, tensor in plain:
        layer, _, what = name.rpartition(".")
        inner = ".base_layer." if layer in adapted else _TOKEN_BASE if layer in rows else "."
        tensors[f"{layer}{inner}{what}" if layer else name] = tensor
    return tensors


def write_adapter(
    folder: Path, model: Any, trained: dict[str, Tensor], lora: LoraConfig, head: bool, tokens: Sequence[int] = ()
) -> None:
    """peft's two files."""
    config = peft_config(model, lora, head, tokens)
    config.base_model_name_or_path = BASE
    config.inference_mode = True
    config.save_pretrained(folder)
    save_file({_file_name(name): tensor.contiguous() for name, tensor in trained.items()}, folder / WEIGHTS)


def copy_base(source: Path, folder: Path) -> None:
    """The files of a whole model into `folder`/base, as links to the same contents where the disk allows it."""
    target = folder / BASE
    target.mkdir()
    for pattern in _BASE_FILES:
        for path in sorted(source.glob(pattern)):
            if (target / path.name).exists():
                continue
            try:
                os.link(path, target / path.name)
            except OSError:
                shutil.copyfile(path, target / path.name)


def lost_in(folder: Path, trained: dict[str, Tensor]) -> list[str]:
    """Names of trained tensors that the written file does not hold as they are."""
    written = load_file(folder / WEIGHTS)
    return [
        name
        for name, tensor in trained.items()
        if _file_name(name) not in written or not torch.equal(written[_file_name(name)], tensor)
    ]


def trains_tokens(folder: Path) -> bool:
    """Whether an adapter has rows of embeddings."""
    return bool(json.loads((folder / CONFIG).read_bytes()).get("trainable_token_indices"))


def _token_layers(model: Any) -> list[tuple[str, Any]]:
    from peft.utils.other import TrainableTokensWrapper

    return [(name, layer) for name, layer in model.named_modules() if isinstance(layer, TrainableTokensWrapper)]


@torch.no_grad()
def _fill(model: Any, tensors: dict[str, Tensor], whole: tuple[str, ...]) -> None:
    """`whole`: modules that were trained in addition to the adapters, as a reward model's head.

    Raises `BadInput` (`bad_adapter`) when the file is not of this model."""
    own = {
        _file_name(name): parameter
        for name, parameter in model.named_parameters()
        if is_adapted(name) or name.startswith(tuple(f"{module}." for module in whole)) or _file_name(name) in tensors
    }
    wrong = sorted(own.keys() ^ tensors.keys())
    if wrong:
        raise BadInput(
            f"the adapter does not fit its base: {len(wrong)} tensors differ, such as {wrong[0]}", code="bad_adapter"
        )
    for name, tensor in tensors.items():
        own[name].copy_(tensor)


def _file_name(name: str) -> str:
    if _NORMS in name:
        name = name.removesuffix(f".{ADAPTER}.weight")
    return _PREFIX + name.replace(f".{ADAPTER}.", ".").removesuffix(f".{ADAPTER}")
