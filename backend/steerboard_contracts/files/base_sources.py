"""How a base model is named that is not in the registry, and which files of one are taken over."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Literal

from steerboard_contracts.models import MODEL_INFO_FILE

SourceType = Literal["random", "folder", "upload", "hub"]

RANDOM_BASES = ("random:tiny-llama",)
UPLOAD = "upload:"
# Code, pickles and anything else in a model folder stay where they are.
MODEL_FILES = (
    *("*.safetensors", "*.safetensors.index.json", "config.json", "generation_config.json", "tokenizer*.json"),
    *("special_tokens_map.json", "vocab.json", "vocab.txt", "merges.txt", "added_tokens.json", "*.model"),
    *("*.tiktoken", "*.jinja", MODEL_INFO_FILE),
)
_UPLOAD = re.compile(rf"{UPLOAD}[0-9a-f]{{64}}")
# Neither a name nor a revision can lead out of the hub's cache: no part is empty or begins with a dot.
_PART = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,95}"
_HUB_NAME = re.compile(rf"(?!-){_PART}/{_PART}(@{_PART}(/{_PART}){{0,8}})?")


def source_type(source: str) -> SourceType | None:
    """None for what names no base model. Looks at no file: a folder is written `/...`, `./...`, `../...` or `~/...`."""
    if source in RANDOM_BASES:
        return "random"
    if source.startswith(("/", "./", "../", "~")) or source in (".", ".."):
        return "folder"
    if _UPLOAD.fullmatch(source):
        return "upload"
    return "hub" if _HUB_NAME.fullmatch(source) else None


def is_model_file(name: str) -> bool:
    """Whether a base model may bring a file of this name along."""
    plain = name.isprintable() and not name.startswith(".") and "/" not in name and "\\" not in name
    return plain and any(fnmatchcase(name, pattern) for pattern in MODEL_FILES)
