"""A GGUF file, expanded once into an ordinary model folder by transformers' own reader.

Weights in blocks become bfloat16, whose rounding is far below that of the blocks; plain ones keep their dtype. What
transformers would leave out in silence, such as scaled positions, is brought over or refused.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig, GgufConfig
from transformers.integrations.gguf import GGUF_CONFIG_ARCHS
from transformers.modeling_gguf_pytorch_utils import (
    GGUF_SUPPORTED_ARCHITECTURES,
    TENSOR_PROCESSORS,
    TensorProcessor,
    get_gguf_hf_weights_map,
)

from steerboard_contracts.errors import BadModel
from steerboard_contracts.files.base_sources import UnsupportedGguf
from steerboard_contracts.files.disk import Disk
from steerboard_contracts.files.gguf import GgufHeader, read_header
from steerboard_contracts.files.local_folders import ModelFolder
from steerboard_workers.stages.models.foreign import check_numbers, check_promises, its_own_fault, leave_out_choices
from steerboard_workers.stages.models.gguf_splits import set_split
from steerboard_workers.stages.models.model_saving import save_weights

_ROPE_FACTORS = "rope_freqs.weight"
# The settings of every Llama 3 whose positions are scaled (their config.json; `_compute_llama3_parameters` of
# transformers).
_LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
_SPACE = "\u2581"
_KNOWN = {name.replace("_", "-") for name in (*GGUF_SUPPORTED_ARCHITECTURES, *GGUF_CONFIG_ARCHS)}
_KNOWN |= {name.replace("-", "") for name in _KNOWN}


def expand_gguf(source: ModelFolder, name: str, folder: Path, disk: Disk) -> tuple[GgufHeader, list[str], str | None]:
    """Write the model of a GGUF file into `folder`, with its tokenizer and template. Also returns the names of tensors
    that are not read, and what a person should know of the tokenizer. Raises `BadModel`, `UnsupportedGguf`,
    `NoSpaceLeft`."""
    import gguf  # only here: no other import needs it

    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".gguf-") as scratch:
        path = Path(scratch) / "model.gguf"
        with source.open(name) as file, path.open("xb") as copy:
            size = os.fstat(file.fileno()).st_size
            disk.need(size)
            shutil.copyfileobj(file, copy, 1 << 20)
        with path.open("rb") as file:
            header = read_header(file, path.stat().st_size, name)
        dtype = _dtype(header)
        disk.need(header.parameters * dtype.itemsize)
        reader = gguf.GGUFReader(path)
        config = _config(path, header, reader)
        with its_own_fault(f"the tokenizer of {name} cannot be read"):
            tokenizer = AutoTokenizer.from_pretrained(scratch, gguf_file=path.name, trust_remote_code=False)
        _check_tokens(tokenizer, reader, name)
        note = None
        if _text(reader, "tokenizer.ggml.model") == "gpt2":
            note = set_split(tokenizer, _text(reader, "tokenizer.ggml.pre"))
        with its_own_fault(f"{name} does not load as a language model"):
            model, report = AutoModelForCausalLM.from_pretrained(
                scratch,
                config=config,
                gguf_file=path.name,
                quantization_config=GgufConfig(dequantize=True),
                dtype=dtype,
                trust_remote_code=False,
                output_loading_info=True,
            )
        lost = [*report["missing_keys"], *report["mismatched_keys"]]
        if lost:
            raise BadModel(f"{len(lost)} tensors of {type(model).__name__} are not in {name}, such as {lost[0]}")
        unread = sorted({*_unread(model, config, header), *report["unexpected_keys"]})
        _set_end_tokens(model, reader)
        del reader  # it has the file mapped
        save_weights(folder, model)
        tokenizer.save_pretrained(folder)
    leave_out_choices(folder)
    return header, unread, note


def _text(reader: Any, field: str) -> str | None:
    given = reader.fields.get(field)
    return None if given is None else str(given.contents())


def _dtype(header: GgufHeader) -> torch.dtype:
    types = set(header.types)
    if types <= {"F32", "F16"}:  # norms are F32 also where the rest is not
        return torch.float16 if "F16" in types else torch.float32
    return torch.bfloat16


def _config(path: Path, header: GgufHeader, reader: Any) -> Any:
    """The config that the header describes. Raises `BadModel` where it promises more than the tensors have."""
    layers = header.own("block_count")
    if isinstance(layers, int) and layers > len(header.tensors):
        raise BadModel(f"the header declares {layers:,} layers, and the file has {len(header.tensors):,} tensors")
    check_numbers(header.metadata, "", "the header")
    if header.architecture.replace("_", "-") not in _KNOWN:
        raise UnsupportedGguf(
            f"transformers cannot read GGUF files of the architecture {header.architecture[:100]!r}",
            hint="Give the model as safetensors, as its makers publish it.",
        )
    with its_own_fault("the header does not describe a language model"):
        config = AutoConfig.from_pretrained(path.parent, gguf_file=path.name, trust_remote_code=False)
        check_promises(config, len(header.tensors), header.parameters, "the header")
    _scale_positions(config, header, reader)
    return config


def _scale_positions(config: Any, header: GgufHeader, reader: Any) -> None:
    """What transformers does not take over of scaled rotary positions. Raises `UnsupportedGguf`."""
    text = config.get_text_config()
    given = getattr(text, "rope_parameters", None) or {}
    if given.get("rope_type", "default") != "default":
        return
    scaling = header.own("rope.scaling.type")
    if scaling not in (None, "none") or header.own("rope.scale_linear"):
        raise _scaled(str(scaling or "linear"))
    tensor = next((tensor for tensor in reader.tensors if tensor.name == _ROPE_FACTORS), None)
    if tensor is None or not (tensor.data != 1).any():
        return
    factors = torch.tensor(tensor.data, dtype=torch.float32)
    proposed = {**given, **_LLAMA3, "rope_type": "llama3", "factor": round(float(factors.max()), 4)}
    if not _are_llama3(factors, proposed):
        raise _scaled("by factors of its own")
    text.rope_parameters = proposed


def _are_llama3(factors: torch.Tensor, rope: dict[str, Any]) -> bool:
    """Whether Llama 3's rule gives these (n,) factors, by which each frequency is divided."""
    n = len(factors)
    waves = 2 * math.pi * rope["rope_theta"] ** (torch.arange(n, dtype=torch.float32) / n)
    low, high, context = (rope[name] for name in _LLAMA3)
    smooth = ((context / waves - low) / (high - low)).clamp(0, 1)
    return bool(torch.allclose(1 / ((1 - smooth) / rope["factor"] + smooth), factors, rtol=1e-2))


def _scaled(how: str) -> UnsupportedGguf:
    return UnsupportedGguf(
        f"the model's positions are scaled ({how[:100]}), which transformers does not read from a GGUF file",
        hint="Give the model as safetensors, as its makers publish it.",
    )


def _check_tokens(tokenizer: Any, reader: Any, name: str) -> None:
    """Every number means the same token as in the file, and control tokens are not cut into pieces."""
    field = reader.fields.get("tokenizer.ggml.tokens")
    tokens = field.contents() if field is not None else []
    if not tokens:
        raise BadModel(f"{name} has no vocabulary", hint="Give a file of a language model.")
    with its_own_fault(f"the vocabulary of {name} cannot be read"):
        ours = tokenizer.get_vocab()
    if _text(reader, "tokenizer.ggml.model") == "llama":  # files of SentencePiece may write its mark as a space
        tokens = [token if token in ours else token.replace(" ", _SPACE) for token in tokens]
    wrong = next((number for number, token in enumerate(tokens) if ours.get(token) not in (number, None)), None)
    lost = [number for number, token in enumerate(tokens) if token not in ours]
    if wrong is not None or lost:
        number = lost[0] if wrong is None else wrong
        raise UnsupportedGguf(
            f"transformers changes the vocabulary of {name}: token {number}, {tokens[number][:100]!r}",
            hint="Give the model as safetensors with its tokenizer.",
        )


def _unread(model: Any, config: Any, header: GgufHeader) -> Iterable[str]:
    """Names of tensors that the model has no place for."""
    if header.architecture in GGUF_CONFIG_ARCHS:
        return []  # reported by transformers itself
    processor = TENSOR_PROCESSORS.get(header.architecture, TensorProcessor)(config=config.to_dict())
    read = {_ROPE_FACTORS, *get_gguf_hf_weights_map(model, processor)}
    return (tensor.name for tensor in header.tensors if tensor.name not in read)


def _set_end_tokens(model: Any, reader: Any) -> None:
    """The end of a turn next to that of the text."""
    config = model.generation_config or GenerationConfig()
    own = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
    field = reader.fields.get("tokenizer.ggml.eot_token_id")
    ends = [*own, *([int(field.contents())] if field is not None else [])]
    distinct = [*dict.fromkeys(end for end in ends if end is not None)]
    if len(distinct) > 1:
        config.eos_token_id = distinct
        model.generation_config = config
