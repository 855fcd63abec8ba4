"""Small GGUF files, written from a model folder as llama.cpp's converter would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from transformers import AutoModelForCausalLM, Gemma2Config

_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
TEMPLATE = "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}</s>{% endfor %}<s>assistant:"


def write_gguf(path: Path, model: Path, kind: str = "Q8_0", architecture: str = "llama", **metadata: Any) -> Path:
    """The Llama in the folder `model`, its matrices as `kind`; `rope_factors` is a further tensor, `split` the way in
    which texts are split, by llama.cpp's name."""
    llama = AutoModelForCausalLM.from_pretrained(model, dtype="float32")
    config = llama.config
    extra, split = metadata.pop("rope_factors", None), metadata.pop("split", "default")
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(metadata.pop("block_count", config.num_hidden_layers))
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(metadata.pop("embedding_length", config.hidden_size))
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(metadata.pop("vocab_size", config.vocab_size))
    for name, value in metadata.items():
        key = name.replace("__", ".")
        writer.add_string(key, value) if isinstance(value, str) else writer.add_uint32(key, value)
    _add_tokenizer(writer, model, split)
    _add_tensors(writer, llama, gguf.GGMLQuantizationType[kind])
    if extra is not None:
        writer.add_tensor("rope_freqs.weight", np.asarray(extra, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tokenizer(writer: Any, model: Path, split: str) -> None:
    described = json.loads((model / "tokenizer.json").read_text())
    control = {token["content"] for token in described["added_tokens"]}
    tokens = sorted(described["model"]["vocab"], key=described["model"]["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(split)
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in control else 1 for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in described["model"]["merges"]])
    writer.add_bos_token_id(tokens.index("<s>"))
    writer.add_eos_token_id(tokens.index("</s>"))
    writer.add_pad_token_id(tokens.index("<pad>"))
    writer.add_chat_template(TEMPLATE)


def _add_tensors(writer: Any, llama: Any, kind: Any) -> None:
    for name, tensor in llama.state_dict().items():
        values = tensor.numpy()
        if name == "lm_head.weight":
            continue  # tied
        if name.startswith("model.layers."):
            _, _, layer, rest = name.split(".", 3)
            rest, suffix = rest.rsplit(".", 1)
            if rest in ("self_attn.q_proj", "self_attn.k_proj"):
                values = _halves_together(values, llama.config.num_attention_heads)
            name = f"blk.{layer}.{_NAMES[rest]}.{suffix}"
        else:
            name = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}[name]
        if values.ndim == 1:
            writer.add_tensor(name, values)
        else:
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)


def _halves_together(values: np.ndarray, heads: int) -> np.ndarray:
    """Rows of (heads * 2 * half, hidden), as llama.cpp pairs them for its rotation."""
    out, width = values.shape
    return values.reshape(heads, 2, out // heads // 2, width).swapaxes(1, 2).reshape(out, width)


_GEMMA_NAMES = {
    **_NAMES,
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
GEMMA_TOKENS = [
    "<pad>",
    "<eos>",
    "<bos>",
    "<unk>",
    "  ",
    "   ",
    *(f"<0x{n:02X}>" for n in range(256)),
    "\u2581",
    *"abc",
]


def write_gemma(path: Path) -> Path:
    """A tiny random Gemma 2 whose tokens of several spaces are written as spaces, as in every file of Gemma."""
    config = Gemma2Config(
        vocab_size=len(GEMMA_TOKENS),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, "gemma2")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(128)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(GEMMA_TOKENS)
    writer.add_token_scores([-float(number) for number in range(len(GEMMA_TOKENS))])
    writer.add_token_types([3] * 4 + [4] * 2 + [6] * 256 + [1] * 4)
    writer.add_pad_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_bos_token_id(2)
    for name, tensor in AutoModelForCausalLM.from_config(config).state_dict().items():
        if name.startswith("model.layers."):
            rest, suffix = name.split(".", 3)[3].rsplit(".", 1)
            name = f"blk.{name.split('.')[2]}.{_GEMMA_NAMES[rest]}.{suffix}"
        elif name == "lm_head.weight":
            continue  # tied
        else:
            name = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}[name]
        writer.add_tensor(name, tensor.numpy() + ("norm" in name))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
