"""Small model folders as a stage would leave them."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from steerboard_contracts.models import ModelInfo, ModelRole

# A small Llama, as its config.json describes it.
TINY_CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 192,
    "vocab_size": 512,
    "dtype": "bfloat16",
}


def safetensors(values: bytes) -> bytes:
    """One tensor `w` of bytes."""
    header = json.dumps({"w": {"dtype": "U8", "shape": [len(values)], "data_offsets": [0, len(values)]}}).encode()
    return struct.pack("<Q", len(header)) + header + values


def gguf(architecture: str = "llama", values: int = 8) -> bytes:
    """A GGUF file with one entry of metadata and one tensor `w` of float32."""
    texts = [struct.pack("<Q", len(text)) + text for text in (b"general.architecture", architecture.encode(), b"w")]
    header = struct.pack("<4sIQQ", b"GGUF", 3, 1, 1) + texts[0] + struct.pack("<I", 8) + texts[1]
    header += texts[2] + struct.pack("<IQIQ", 1, values, 0, 0)
    return header + bytes(-len(header) % 32) + bytes(4 * values)


def info_of(role: ModelRole = "sft", method: str | None = "sft") -> ModelInfo:
    return ModelInfo(role=role, method=method, architecture="LlamaForCausalLM", parameters=3, max_length=64)


def write_model(folder: Path, role: ModelRole = "sft", method: str | None = "sft", weights: bytes = b"123") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "steerboard.json").write_text(info_of(role, method).model_dump_json())
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    (folder / "model.safetensors").write_bytes(safetensors(weights))
    (folder / "tokenizer.json").write_text("{}")
    return folder
