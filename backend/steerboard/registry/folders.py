"""What a model folder may hold: safetensors, JSON and text. Nothing that could run code when it is loaded."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from pydantic import ValidationError

from steerboard_contracts.errors import BadInput, ErrorLocation, UnsafeModelFile
from steerboard_contracts.models import MODEL_INFO_FILE, ModelInfo

# `.model` and `.tiktoken` are SentencePiece and tiktoken vocabularies: data, not pickles.
_SAFE_SUFFIXES = frozenset({".safetensors", ".json", ".jsonl", ".txt", ".md", ".jinja", ".model", ".tiktoken"})
_SAFE_NAMES = frozenset({"LICENSE", "NOTICE", "README"})
_HEADER_LIMIT = 100 * 2**20  # the limit of the safetensors library itself
_PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def check_folder(folder: Path) -> None:
    """Refuse a folder with anything but plain safe files. Raises `UnsafeModelFile` naming every file at fault."""
    if folder.is_symlink() or not folder.is_dir():
        raise BadInput(f"{folder.name} is not a folder", code="not_a_model", hint="Give the folder of a model.")
    faults: list[ErrorLocation] = []
    weights = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        fault = _fault(path)
        if fault:
            faults.append(ErrorLocation(location=name, message=fault))
        elif path.suffix == ".safetensors":
            weights += 1
    if faults:
        raise UnsafeModelFile(
            f"{faults[0].location} {faults[0].message}"
            + (f", and {len(faults) - 1} more files are refused" if len(faults) > 1 else ""),
            hint="A model folder holds safetensors, JSON and text files only. Convert other weights with "
            "transformers: model.save_pretrained(DIR, safe_serialization=True).",
            errors=faults,
        )
    if not weights or not (folder / "config.json").is_file():
        raise BadInput(
            f"{folder.name} holds no {'safetensors weights' if not weights else 'config.json'}",
            code="not_a_model",
            hint="A model folder needs config.json and at least one .safetensors file.",
        )


def _fault(path: Path) -> str | None:
    if path.is_symlink():
        return "is a symbolic link"
    if path.is_dir():
        return None
    if not path.is_file():
        return "is not a plain file"
    if path.suffix.lower() not in _SAFE_SUFFIXES and path.name not in _SAFE_NAMES:
        return "is of a type that is not allowed (pickled weights and code are never stored)"
    with path.open("rb") as file:
        head = file.read(8)
        if path.suffix.lower() == ".safetensors":
            return _safetensors_fault(head, file.read(1), path.stat().st_size)
    return "is a pickle or an archive, despite its name" if head.startswith(_PICKLES) else None


def _safetensors_fault(head: bytes, first: bytes, size: int) -> str | None:
    """A safetensors file starts with the length of a JSON header (8 bytes, little-endian) and that header."""
    length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
    if first != b"{" or not 2 <= length <= min(_HEADER_LIMIT, size - 8):
        return "is not a safetensors file"
    return None


def read_info(folder: Path) -> ModelInfo:
    """The model's own steerboard.json. Raises `BadInput` (`bad_model_info`) when it is missing or wrong."""
    path = folder / MODEL_INFO_FILE
    try:
        return ModelInfo.model_validate(json.loads(path.read_bytes()))
    except FileNotFoundError as error:
        raise BadInput(
            f"{folder.name} has no {MODEL_INFO_FILE}",
            code="bad_model_info",
            hint="Import outside models with a `base` run, which writes it.",
        ) from error
    except ValidationError as error:
        places = [
            ErrorLocation(location=".".join(str(part) for part in problem["loc"]), message=problem["msg"])
            for problem in error.errors(include_url=False)
        ]
        raise BadInput(f"{MODEL_INFO_FILE} is not valid", code="bad_model_info", errors=places) from error
    except (ValueError, OSError) as error:
        raise BadInput(f"{MODEL_INFO_FILE} cannot be read: {error}", code="bad_model_info") from error
