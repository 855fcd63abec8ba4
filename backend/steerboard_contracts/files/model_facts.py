"""What can be known of a model before its weights are read: from its settings, or from the header of a GGUF file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from steerboard_contracts.files.gguf import GgufHeader

_WIDTHS = {"float32": 4, "bfloat16": 2, "float16": 2}
_LICENCE = re.compile(r"^---\n.*?^license(?:_name)?: *[\"']?([^\s\"']+)", re.MULTILINE | re.DOTALL)
_CARD = 10_000
# How config.json calls what a GGUF file has, of its architecture's metadata.
_OF_GGUF = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "feed_forward_length": "intermediate_size",
    "context_length": "max_position_embeddings",
    "vocab_size": "vocab_size",
}


class ModelFacts(BaseModel):
    """`config` is that of config.json, or as it would be. `size` counts bytes of all files that an import reads,
    `weights` those of the weights among them; `parameters` 0 where only the weights' size is known; `template`: has a
    chat template of its own, null where that is not known."""

    model_config = ConfigDict(extra="forbid")

    config: dict[str, Any] = {}
    parameters: Annotated[int, Field(ge=0, le=1 << 50)] = 0
    files: Annotated[int, Field(ge=0)] = 0
    size: Annotated[int, Field(ge=0, le=1 << 60)] = 0
    weights: Annotated[int, Field(ge=0, le=1 << 60)] = 0
    template: bool | None = None
    licence: Annotated[str | None, Field(max_length=200)] = None
    quantised: Annotated[list[str], Field(max_length=50)] = []

    @property
    def architecture(self) -> str | None:
        named = self.config.get("architectures")
        return str(named[0])[:200] if isinstance(named, list) and named else None

    @property
    def window(self) -> int | None:
        """Tokens of its positions."""
        text = self.config.get("text_config")
        for config in (text if isinstance(text, Mapping) else {}, self.config):
            positions = config.get("max_position_embeddings")
            if isinstance(positions, int) and positions > 0:
                return positions
        return None

    def counted(self) -> int:
        """Parameters, by the size of the weights where they are not counted; 0 where they are in blocks."""
        if self.parameters or "quantization_config" in self.config:
            return self.parameters
        width = _WIDTHS.get(str(self.config.get("dtype") or self.config.get("torch_dtype")), 4)
        return self.weights // width


def facts_of_gguf(header: GgufHeader, size: int) -> ModelFacts:
    """The facts of a GGUF file of `size` bytes."""
    config: dict[str, Any] = {"architectures": [header.architecture]}
    for key, name in _OF_GGUF.items():
        value = header.own(key)
        value = max(value) if isinstance(value, list) and value else value
        if isinstance(value, int):
            config[name] = value
    if "vocab_size" not in config:
        config["vocab_size"] = header.lengths.get("tokenizer.ggml.tokens", 0)
    config["dtype"] = "float32" if set(header.types) <= {"F32"} else "bfloat16"
    licence = header.metadata.get("general.license")
    return ModelFacts(
        config=config,
        parameters=header.parameters,
        files=1,
        size=size,
        weights=size,
        template="tokenizer.chat_template" in header.metadata,
        licence=licence[:200] if isinstance(licence, str) else None,
        quantised=header.quantised,
    )


def licence_of_card(text: str) -> str | None:
    """The licence from the front matter of a model card."""
    match = _LICENCE.match(text[:_CARD])
    return match[1][:200] if match else None


def licence_named(data: Mapping[str, Any]) -> str | None:
    """The licence from the front matter, read; `other` is not a licence, but has a name."""
    licence, name = data.get("license"), data.get("license_name")
    licence_name = name if licence == "other" and name else licence
    return str(licence_name)[:200] if isinstance(licence_name, str) else None
