"""llama.cpp's `convert_hf_to_gguf.py`, in a process of its own: its `gguf` may be another release than ours.

`python converter.py CONVERTER MODEL TARGET PRECISION FAULT` ends with status 3 and the reason in FAULT for a model that
the converter does not know. It knows tokenizers by the tokens that they make of one text, so it refuses vocabularies
that were trained here; of those, the way they split texts decides.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

UNKNOWN = 3
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SPLITS = {
    ("bytes",): "gpt-2",
    ("digits", "bytes"): "smollm",
    (_LLAMA3, "plain bytes"): "llama-bpe",
    (_LLAMA3.replace("{1,3}", ""), "plain bytes"): "qwen2",
}


def pre_tokenizer_of(tokenizer: Mapping[str, Any]) -> str | None:
    """What llama.cpp calls the way in which this tokenizer.json splits texts; None for one that it may not have."""
    if tokenizer["model"]["type"] != "BPE" or (tokenizer["normalizer"] or {"type": "NFC"})["type"] != "NFC":
        return None
    first = tokenizer["pre_tokenizer"] or {}
    parts = first["pretokenizers"] if first.get("type") == "Sequence" else [first]
    return _SPLITS.get(tuple(_part(part) for part in parts))


def _part(part: Mapping[str, Any]) -> str:
    kind = part.get("type")
    if kind == "ByteLevel" and not part["add_prefix_space"]:
        return "bytes" if part["use_regex"] else "plain bytes"
    if kind == "Digits" and part["individual_digits"]:
        return "digits"
    if kind == "Split" and part["behavior"] == "Isolated" and not part["invert"]:
        return str(part["pattern"].get("Regex"))
    return f"other {kind}"


def convert(converter: Path, model: Path, target: Path, precision: str) -> None:
    """Raises `NotImplementedError` with what the converter does not know."""
    sys.path.insert(1, str(converter / "gguf-py"))
    from conversion import ModelBase, ModelType, get_model_architecture, get_model_class  # type: ignore[import-not-found]
    from conversion.base import TextModel  # type: ignore[import-not-found]

    architecture = get_model_architecture(ModelBase.load_hparams(model, False), ModelType.TEXT)
    try:
        get_model_class(architecture)
    except NotImplementedError as error:
        raise NotImplementedError(f"llama.cpp does not know the architecture {architecture}") from error
    by_tokens = TextModel.get_vocab_base_pre

    def known_split(self: Any, tokenizer: Any) -> str:
        try:
            return str(by_tokens(self, tokenizer))
        except NotImplementedError:
            split = pre_tokenizer_of(json.loads((model / "tokenizer.json").read_bytes()))
            if split is None:
                raise NotImplementedError("llama.cpp does not know how its tokenizer splits texts") from None
            return split

    TextModel.get_vocab_base_pre = known_split
    script = converter / "convert_hf_to_gguf.py"
    sys.argv = [str(script), str(model), "--outfile", str(target), "--outtype", precision]
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    converter_, model_, target_, precision_, fault = sys.argv[1:]
    try:
        convert(Path(converter_), Path(model_), Path(target_), precision_)
    except NotImplementedError as refused:
        Path(fault).write_text(str(refused))
        raise SystemExit(UNKNOWN) from refused
