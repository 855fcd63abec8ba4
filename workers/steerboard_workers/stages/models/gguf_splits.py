"""How a GGUF file's tokenizer splits texts into the pieces within which bytes are merged.

llama.cpp has a name for each way (`tokenizer.ggml.pre`, `llama-vocab.cpp`). transformers' reader knows some of them,
and takes GPT-2's for all others. Numbers, spaces and line ends then become other tokens than the makers trained on.
"""

from __future__ import annotations

from typing import Any

from tokenizers import Regex
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split
from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

# Names with one and the same pattern in llama.cpp. `default` is what files have of which nothing is known.
_GPT2 = {
    "default", "gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum",
    "modern-bert", "mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4", "jina-v1-en", "jina-v2-code",
    "roberta-bpe",
}  # fmt: skip
_DIGITS = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"}
_QWEN2 = {"stablelm2", "hunyuan", "solar-open"}


def set_split(tokenizer: Any, name: str | None) -> str | None:
    """Lets a tokenizer that merges bytes split as `name` has it, where transformers does not. Returns what a person
    should know where that cannot be done."""
    if name is None or name in _GPT2 or name in GGUF_PRE_TOKENIZER_SPLITS:
        return None
    if name in _DIGITS:
        parts = [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
    elif name in _QWEN2:
        split = Split(Regex(GGUF_PRE_TOKENIZER_SPLITS["qwen2"]), "isolated")
        parts = [split, ByteLevel(add_prefix_space=False, use_regex=False)]
    else:
        return (
            f"the tokenizer splits texts by `{name[:100]}`, which is not known here, and is read as GPT-2's: some "
            "texts may become other tokens than for its makers"
        )
    tokenizer.backend_tokenizer.pre_tokenizer = Sequence(parts)
    return None
