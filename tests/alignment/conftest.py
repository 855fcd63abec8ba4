"""Small real tokenizers: the project's own byte-level BPE, a Llama-2-like Metaspace BPE, and a ChatML one."""

from __future__ import annotations

import string

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from steerboard_workers.stages.base import train_tokenizer

TEXTS = [
    "User: How do I bake bread? Assistant: Mix flour, water, salt and yeast; wait; bake at 230 degrees.",
    "User: Thanks! And a cake? Assistant: Eggs, sugar, butter, flour. Bake 35 minutes.",
    "System: Be brief. User: Why is the sky blue? Assistant: <rm_score> 5.00 Short waves scatter most.",
] * 4

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content | trim + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@pytest.fixture(scope="session")
def own_tokenizer():
    return train_tokenizer(TEXTS, 400, 256)


@pytest.fixture(scope="session")
def metaspace_tokenizer():
    """Word starts carry U+2581, and only the first word of a text gets one put before it."""
    bpe = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    bpe.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
    bpe.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse()])
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<unk>", "<s>", "</s>"],
        initial_alphabet=[*string.printable, *"ünïcödé漢字"],
        show_progress=False,
    )
    bpe.train_from_iterator(TEXTS, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


@pytest.fixture(scope="session")
def chat_tokenizer():
    """ChatML: the end of a turn is not the tokenizer's eos, and there is no bos."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(TEXTS, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token="<|endoftext|>", extra_special_tokens=["<|im_start|>", "<|im_end|>"]
    )
    tokenizer.chat_template = CHATML
    return tokenizer
