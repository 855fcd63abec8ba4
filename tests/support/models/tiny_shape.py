"""The shape of models small enough to be made for a test, with weights so large that a leak between sequences shows."""

from __future__ import annotations

SHAPE = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "pad_token_id": 0,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 128,
    "num_labels": 1,
    "initializer_range": 0.2,
}
