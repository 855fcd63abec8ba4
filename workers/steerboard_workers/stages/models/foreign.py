"""A model folder from outside: copied, and checked against its own description before transformers reads it.

Nothing in it chooses code, kernels, or files elsewhere. Problems are reported as faults of the folder, which
another attempt would meet again.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM

from steerboard_contracts.errors import BadModel, SteerboardError
from steerboard_contracts.files.base_sources import GGUF
from steerboard_contracts.files.disk import FULL, Disk
from steerboard_contracts.files.local_folders import ModelFolder
from steerboard_workers.stages.oom import ran_out_of_memory

_SETTINGS = ("config.json", "generation_config.json", "tokenizer_config.json", "special_tokens_map.json")
# Values of these are names of code, of kernels on the hub, or of files.
_CHOOSES = frozenset(
    {
        *("auto_map", "custom_pipelines", "custom_generate", "trust_remote_code", "code_revision", "init_inputs"),
        *("use_kernels", "kernel_config", "transformers_weights", "_name_or_path", "name_or_path", "_commit_hash"),
        "_model_name_or_path",
    }
)
_CHOOSES_BY_END = ("_implementation", "_implementation_internal", "_implementation_autoset", "_file", "_files")
_HARMLESS = frozenset({"cache_implementation"})
_SETTINGS_BYTES = 16 << 20
_TOKENIZER_BYTES = 512 << 20
_HEADER_BYTES = 32 << 20
_LARGEST_NUMBER = 1 << 31
_LONGEST_WINDOW = 10**8
# Quantised weights are packed: up to this many parameters share one stored number.
_PACKED = 16


@contextmanager
def its_own_fault(what: str) -> Iterator[None]:
    """Whatever goes wrong inside is the model's fault: `BadModel`. Memory and disks that are full are not.

    Libraries raise many kinds, a panic of the tokenizers' among them, which is not an `Exception`.
    """
    try:
        yield
    except (SteerboardError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException as error:
        if (isinstance(error, OSError) and error.errno in FULL) or ran_out_of_memory(error):
            raise
        why = (str(error).strip().splitlines() or [""])[0][:300]
        raise BadModel(
            f"{what}: {type(error).__name__}{f': {why}' if why else ''}",
            hint="Give a causal language model saved by save_pretrained, with its tokenizer.",
        ) from error


def copy_model(source: ModelFolder, folder: Path, disk: Disk) -> list[str]:
    """The model's files, without what chooses code or files. Returns what was left out, for people.

    Raises `BadModel`, `NoSpaceLeft`."""
    for name in source.names:
        if name.endswith(GGUF):
            continue  # the same model once more
        (folder / name).parent.mkdir(exist_ok=True)
        with source.open(name) as file, (folder / name).open("xb") as copy:
            disk.need(os.fstat(file.fileno()).st_size)
            shutil.copyfileobj(file, copy, 1 << 20)
    return leave_out_choices(folder)


def leave_out_choices(folder: Path) -> list[str]:
    """Take what chooses code or files out of a folder's settings, and return it, for people. Raises `BadModel`."""
    left_out = []
    for name in _SETTINGS:
        if (folder / name).is_file():
            content = read_json(folder / name)
            choices: set[str] = set()
            kept = _without_choices(content, choices)
            if choices:
                (folder / name).write_text(json.dumps(kept, indent=2) + "\n")
                left_out.append(f"{', '.join(sorted(choices))} ({name})")
    return left_out


def _without_choices(value: Any, choices: set[str]) -> Any:
    if isinstance(value, list):
        return [_without_choices(item, choices) for item in value]
    if not isinstance(value, dict):
        return value
    chooses = {key for key in value if _chooses(key)}
    choices |= chooses
    return {key: _without_choices(item, choices) for key, item in value.items() if key not in chooses}


def _chooses(key: str) -> bool:
    return key in _CHOOSES or (key.endswith(_CHOOSES_BY_END) and key not in _HARMLESS)


def read_json(path: Path) -> dict[str, Any]:
    """A file of settings. Raises `BadModel` for what is not a JSON object, or far too large for one."""
    if path.stat().st_size > _SETTINGS_BYTES:
        raise BadModel(f"{path.name} has {path.stat().st_size:,} bytes, too many for a settings file")
    with its_own_fault(f"{path.name} cannot be read"):
        content = json.loads(path.read_bytes())
    if not isinstance(content, dict):
        raise BadModel(f"{path.name} is not a JSON object")
    return content


def check_model(folder: Path) -> None:
    """Checks a folder that is `check_safe`, before anything is loaded: its files are whole, and its config promises no
    more than they hold. Raises `BadModel`."""
    for path in sorted(folder.glob("*.json")):
        if path.stat().st_size > _TOKENIZER_BYTES:
            raise BadModel(f"{path.name} has {path.stat().st_size:,} bytes, too many for a tokenizer")
    tensors = stored = 0
    for path in sorted(folder.glob("*.safetensors")):
        shapes = _shapes(path)
        tensors += len(shapes)
        stored += sum(math.prod(shape) for shape in shapes)
    check_numbers(read_json(folder / "config.json"), "")
    with its_own_fault("config.json does not describe a language model"):
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        check_promises(config, tensors, stored)


def check_promises(config: Any, tensors: int, stored: int, whose: str = "config.json") -> None:
    """A config needs no more layers than there are tensors, nor far more parameters than are stored. Raises
    `BadModel`, and whatever transformers raises for other models."""
    layers = getattr(config.get_text_config(), "num_hidden_layers", None) or 0
    if layers > tensors:
        raise BadModel(f"{whose} declares {layers} layers, and the weights have {tensors} tensors")
    with torch.device("meta"):
        # Only counted: a classifier's head is small next to what is allowed on top.
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    promised = sum(parameter.numel() for parameter in model.parameters())
    if promised > _PACKED * stored + (1 << 20):
        raise BadModel(f"{whose} declares {promised:,} parameters, and the weights have {stored:,}")


def check_index(folder: Path) -> None:
    """Raises `BadModel` when an index leads to weights that are not in the folder."""
    for path in sorted(folder.glob("*.safetensors.index.json")):
        parts = read_json(path).get("weight_map")
        if not isinstance(parts, dict) or not all(isinstance(part, str) for part in parts.values()):
            raise BadModel(f"{path.name} has no weight_map")
        for part in sorted(set(parts.values())):
            if "/" in part or "\0" in part or not (folder / part).is_file():
                raise BadModel(f"{path.name} names {part[:200]!r}, which is not in the folder")


def _shapes(path: Path) -> list[list[int]]:
    size = path.stat().st_size
    with path.open("rb") as file:
        header = int.from_bytes(file.read(8), "little")
    if size < 8 or header > size - 8:
        raise BadModel(f"{path.name} is not a safetensors file, or is incomplete")
    if header > _HEADER_BYTES:
        raise BadModel(f"{path.name} has a header of {header:,} bytes; at most {_HEADER_BYTES:,} are read")
    with its_own_fault(f"{path.name} is damaged"), safe_open(path, "pt") as weights:
        return [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118 - no mapping


def check_numbers(value: Any, name: str, whose: str = "config.json") -> None:
    """Sizes that no model has would only be found out by allocating them, or by counting up to them."""
    if isinstance(value, dict):
        for key, item in value.items():
            check_numbers(item, key, whose)
    elif isinstance(value, list):
        for item in value:
            check_numbers(item, name, whose)
    elif isinstance(value, int) and not isinstance(value, bool):
        counts = "layer" in name or "expert" in name or "block_count" in name
        most = 10**5 if counts else _LONGEST_WINDOW if "position" in name else _LARGEST_NUMBER
        if value > most:
            raise BadModel(f"{whose} has {name[:100]} {value if value < 10**30 else '1e30 or more'}")
