"""How a base model is named that is not in the registry, and which files of one are taken over."""

from __future__ import annotations

import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from steerboard_contracts.errors import BadInput, ErrorLocation
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
# A whole model in one file, which is expanded into those above.
GGUF = ".gguf"
# Where transformers keeps the templates by name that are not the default one, each as a file.
TEMPLATES_FOLDER = "additional_chat_templates"
_UPLOAD = re.compile(rf"{UPLOAD}[0-9a-f]{{64}}")
# Neither a name nor a revision can lead out of the hub's cache: no part is empty or begins with a dot.
_PART = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,95}"
_FILE = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,200}\.gguf"
_REPOSITORY_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,95}"
HUB_REPOSITORY = rf"^{_REPOSITORY_PART}/{_REPOSITORY_PART}$"
_HUB_NAME = re.compile(rf"(?!-){_PART}/{_PART}(@{_PART}(/{_PART}){{0,8}})?(:{_FILE})?")
_ONE_OF_SEVERAL = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
_LISTED = 20


class BasePlace(NamedTuple):
    """The place of a base model, and which GGUF file of it was chosen."""

    place: str
    """A folder, or a hub name with its revision."""
    file: str | None


class UnsupportedGguf(BadInput):
    """A GGUF file is sound, and yet cannot be expanded into a model."""

    code = "unsupported_gguf"
    title = "The GGUF file cannot be read"


class SeveralGgufFiles(BadInput):
    """A folder or repository has more than one GGUF file, and none was chosen."""

    code = "several_gguf_files"
    title = "It is not clear which GGUF file is meant"


def source_type(source: str) -> SourceType | None:
    """Returns None for what names no base model. Looks at no file: a folder begins with `/`, `./`, `../` or `~/`."""
    if source in RANDOM_BASES:
        return "random"
    if source.startswith(("/", "./", "../", "~")) or source in (".", ".."):
        return "folder"
    if _UPLOAD.fullmatch(source):
        return "upload"
    return "hub" if _HUB_NAME.fullmatch(source) else None


def base_place(source: str) -> BasePlace:
    """`./folder/file.gguf` and `org/name[@revision]:file.gguf` choose a file."""
    if source_type(source) == "folder":
        place, slash, file = source.rpartition("/")
        return BasePlace(place or slash, file) if file.endswith(GGUF) else BasePlace(source, None)
    place, _, file = source.partition(":")
    return BasePlace(place, file) if file.endswith(GGUF) else BasePlace(source, None)


def is_model_file(name: str) -> bool:
    """Whether a base model may bring a file of this name along, which is in the folder itself or among its templates
    by name."""
    folder, _, within = name.rpartition("/")
    if folder == TEMPLATES_FOLDER:
        name = within if within.endswith(".jinja") else ""
    plain = name.isprintable() and not name.startswith(".") and "/" not in name and "\\" not in name
    return plain and (name.endswith(GGUF) or any(fnmatchcase(name, pattern) for pattern in MODEL_FILES))


def gguf_to_read(names: Collection[str], where: str, chosen: str | None = None) -> str | None:
    """The GGUF file, of those called `names`, that is the model; None where config.json and safetensors are.

    Raises `BadInput` (`not_a_model`) where there is neither, `SeveralGgufFiles`, `UnsupportedGguf` for a part of one.
    """
    names = [name for name in names if is_model_file(name)]
    files = sorted(name for name in names if name.endswith(GGUF))
    if chosen is not None and chosen not in files:
        raise BadInput(
            f"{where} has no file {chosen}" + (f"; it has {', '.join(files[:_LISTED])}" if files else ""),
            code="not_a_model",
        )
    if chosen is None:
        weights = any(name.endswith(".safetensors") for name in names)
        if weights and "config.json" in names:
            return None
        if weights or not files:
            _neither(names, where)
        whole = [name for name in files if not _ONE_OF_SEVERAL.search(name)]
        if len(files) > 1 and whole:
            raise SeveralGgufFiles(
                f"{where} has {len(files)} GGUF files: {', '.join(files[:_LISTED])}",
                hint=f"Choose one: FOLDER/{whole[0]}, or ORG/NAME:{whole[0]} on the hub.",
                errors=[ErrorLocation(location=name, message="can be chosen") for name in whole[:_LISTED]],
            )
        chosen = files[0]
    if _ONE_OF_SEVERAL.search(chosen):
        raise UnsupportedGguf(
            f"{chosen} is one of several parts of a model",
            hint=f"Join them first: llama-gguf-split --merge {chosen} model.gguf",
        )
    return chosen


def _neither(names: Collection[str], where: str) -> None:
    if "config.json" not in names:
        raise BadInput(f"{where} has no config.json, so it is not a model folder", code="not_a_model")
    raise BadInput(
        f"{where} has no .safetensors file and no .gguf file; other formats are not loaded",
        code="not_a_model",
        hint="Save the model again with safe_serialization=True.",
    )
