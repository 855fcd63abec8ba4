"""Chat templates that behave as those of well-known families of models are documented to, and small tokenizers that
have their control tokens. Written for these tests."""
# ruff: noqa: E501

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

TEXT = [
    "The quick brown fox jumps over the lazy dog. Hello there, how are you? I am fine.",
    "user assistant system model User Assistant USER ASSISTANT [INST] [/INST] <<SYS>> Today Date 26 Jul 2024",
    "What is 2 + 2? It is 4.\n\nName a city.\n Lima is a city in Peru.\n\n\nThe answer is A.  a b c d yes no",
    "def f(x):\n    return x + 1\n\n1. one\n2. two\n",
    "مرحبا بالعالم 你好 привет 🙂",
]
# As Llama 3 and Qwen split: line ends stay together, with the spaces before them.
_SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"

_ALTERNATE = (
    "{%- if (m['role'] == 'user') != (loop.index0 % 2 == 0) -%}"
    "{{- raise_exception('roles must alternate user and assistant') -}}{%- endif -%}"
)
_NO_SYSTEM = (
    "{%- if messages[0]['role'] == 'system' -%}{{- raise_exception('System role not supported') -}}{%- endif -%}"
)


@dataclass(frozen=True)
class Family:
    """`control`: its control tokens, of which those of `rstrip` take the spaces behind them; `system`: whether it takes
    a system turn."""

    template: str
    control: tuple[str, ...]
    eos: str
    bos: str | None = None
    plain_added: tuple[str, ...] = ()
    sentencepiece: bool = False
    rstrip: tuple[str, ...] = ()
    system: bool = True


def _chatml(extra: str = "") -> str:
    return (
        extra + "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
    )


_CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_LLAMA3 = ("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
_SENTENCEPIECE = ("<unk>", "<s>", "</s>")
_HEADER = "'<|start_header_id|>' + m['role'] + '<|end_header_id|>\\n\\n'"
_QWEN3 = (
    "{%- set ns = namespace(last=0) %}{%- for m in messages %}{%- if m['role'] == 'user' %}"
    "{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}"
    "{%- for m in messages %}{%- if m['role'] == 'assistant' %}"
    "{%- set c = m['content'] %}{%- set r = '' %}"
    "{%- if '</think>' in c %}{%- set r = c.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}"
    "{%- set c = c.split('</think>')[-1].lstrip('\\n') %}{%- endif %}"
    "{%- if loop.index0 > ns.last %}"
    "{{- '<|im_start|>assistant\\n<think>\\n' + r.strip('\\n') + '\\n</think>\\n\\n' + c.lstrip('\\n') }}"
    "{%- else %}{{- '<|im_start|>assistant\\n' + c }}{%- endif %}{{- '<|im_end|>\\n' }}"
    "{%- else %}{{- '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)

FAMILIES: dict[str, Family] = {
    "chatml": Family(_chatml(), _CHATML, "<|im_end|>"),
    "marked": Family(
        "{% for m in messages %}{% if m['role'] == 'assistant' %}{{ '<|im_start|>assistant\\n' }}"
        "{% generation %}{{ m['content'] + '<|im_end|>' }}{% endgeneration %}{{ '\\n' }}"
        "{% else %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
        _CHATML,
        "<|im_end|>",
    ),
    "qwen2.5": Family(
        _chatml(
            "{%- if messages[0]['role'] != 'system' %}"
            "{{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}{%- endif %}"
        ),
        _CHATML,
        "<|im_end|>",
    ),
    "qwen3": Family(_QWEN3, _CHATML, "<|im_end|>", plain_added=("<think>", "</think>")),
    "qwen3-thinking": Family(
        _QWEN3.replace(
            "{{- '<|im_start|>assistant\\n' }}{%- endif", "{{- '<|im_start|>assistant\\n<think>\\n' }}{%- endif"
        ),
        _CHATML,
        "<|im_end|>",
        plain_added=("<think>", "</think>"),
    ),
    "llama-2": Family(
        "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set sys = messages[0]['content'] %}"
        "{% else %}{% set rest = messages %}{% set sys = false %}{% endif %}"
        "{% for m in rest %}" + _ALTERNATE + "{% if loop.index0 == 0 and sys != false %}"
        "{% set c = '<<SYS>>\\n' + sys + '\\n<</SYS>>\\n\\n' + m['content'] %}{% else %}{% set c = m['content'] %}{% endif %}"
        "{% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + c.strip() + ' [/INST]' }}"
        "{% else %}{{ ' ' + c.strip() + ' ' + eos_token }}{% endif %}{% endfor %}",
        _SENTENCEPIECE,
        "</s>",
        "<s>",
        sentencepiece=True,
    ),
    "llama-3": Family(
        "{{ bos_token }}{% for m in messages %}{{ " + _HEADER + " + m['content'] | trim + '<|eot_id|>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}",
        _LLAMA3,
        "<|end_of_text|>",
        "<|begin_of_text|>",
    ),
    "llama-3.1": Family(
        "{{- bos_token }}{%- if not date_string is defined %}{%- set date_string = strftime_now('%d %b %Y') %}{%- endif %}"
        "{%- if messages[0]['role'] == 'system' %}{%- set sys = messages[0]['content'] | trim %}{%- set rest = messages[1:] %}"
        "{%- else %}{%- set sys = '' %}{%- set rest = messages %}{%- endif %}"
        "{{- '<|start_header_id|>system<|end_header_id|>\\n\\nToday Date: ' + date_string + '\\n\\n' + sys + '<|eot_id|>' }}"
        "{%- for m in rest %}{{- " + _HEADER + " + m['content'] | trim + '<|eot_id|>' }}{%- endfor %}"
        "{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}",
        _LLAMA3,
        "<|end_of_text|>",
        "<|begin_of_text|>",
    ),
    "mistral-old": Family(
        "{{ bos_token }}" + _NO_SYSTEM + "{% for m in messages %}" + _ALTERNATE + "{% if m['role'] == 'user' %}"
        "{{ '[INST] ' + m['content'] + ' [/INST]' }}{% else %}{{ m['content'] + eos_token + ' ' }}{% endif %}{% endfor %}",
        _SENTENCEPIECE,
        "</s>",
        "<s>",
        sentencepiece=True,
        system=False,
    ),
    "mistral-0.3": Family(
        "{{ bos_token }}{% set ns = namespace(sys='') %}{% if messages[0]['role'] == 'system' %}"
        "{% set ns.sys = messages[0]['content'] + '\\n\\n' %}{% set rest = messages[1:] %}{% else %}{% set rest = messages %}"
        "{% endif %}{% set asked = rest | selectattr('role', 'equalto', 'user') | list %}"
        "{% for m in rest %}{% if m['role'] == 'user' %}{{ '[INST] ' + (ns.sys if m == asked[-1] else '') + m['content'] + '[/INST]' }}"
        "{% else %}{{ ' ' + m['content'] + eos_token }}{% endif %}{% endfor %}",
        (*_SENTENCEPIECE, "[INST]", "[/INST]"),
        "</s>",
        "<s>",
        sentencepiece=True,
    ),
    "mistral-new": Family(
        "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'system' %}{{ '[SYSTEM_PROMPT]' + m['content'] + '[/SYSTEM_PROMPT]' }}"
        "{% elif m['role'] == 'user' %}{{ '[INST]' + m['content'] + '[/INST]' }}{% else %}{{ m['content'] + eos_token }}{% endif %}"
        "{% endfor %}",
        ("<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
        "</s>",
        "<s>",
    ),
    "gemma": Family(
        "{{ bos_token }}"
        + _NO_SYSTEM
        + "{% for m in messages %}"
        + _ALTERNATE
        + "{% set role = 'model' if m['role'] == 'assistant' else m['role'] %}"
        "{{ '<start_of_turn>' + role + '\\n' + m['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}",
        ("<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>"),
        "<eos>",
        "<bos>",
        system=False,
    ),
    "phi-3": Family(
        "{% for m in messages %}{{ '<|' + m['role'] + '|>\\n' + m['content'] + '<|end|>\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}",
        ("<|endoftext|>", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>"),
        "<|endoftext|>",
        rstrip=("<|user|>", "<|assistant|>", "<|system|>", "<|end|>"),
    ),
    "phi-4": Family(
        "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '<|im_sep|>' + m['content'] + '<|im_end|>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}",
        (*_CHATML, "<|im_sep|>"),
        "<|im_end|>",
    ),
    "deepseek-r1": Family(
        "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'system' %}{{ m['content'] }}"
        "{% elif m['role'] == 'user' %}{{ '<｜User｜>' + m['content'] }}"
        "{% else %}{% set c = m['content'].split('</think>')[-1] if '</think>' in m['content'] else m['content'] %}"
        "{{ '<｜Assistant｜>' + c + '<｜end▁of▁sentence｜>' }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<｜Assistant｜><think>\\n' }}{% endif %}",
        ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"),
        "<｜end▁of▁sentence｜>",
        "<｜begin▁of▁sentence｜>",
        plain_added=("<think>", "</think>"),
    ),
    "zephyr": Family(
        "{% for m in messages %}{{ '<|' + m['role'] + '|>\\n' + m['content'] + eos_token + '\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}",
        _SENTENCEPIECE,
        "</s>",
        "<s>",
        sentencepiece=True,
    ),
    "vicuna": Family(
        "{% if messages[0]['role'] == 'system' %}{{ messages[0]['content'] + ' ' }}{% set rest = messages[1:] %}"
        "{% else %}{{ 'A chat between a user and an assistant. ' }}{% set rest = messages %}{% endif %}"
        "{% for m in rest %}{% if m['role'] == 'user' %}{{ 'USER: ' + m['content'].strip() + ' ' }}"
        "{% else %}{{ 'ASSISTANT: ' + m['content'].strip() + eos_token }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}",
        _SENTENCEPIECE,
        "</s>",
        "<s>",
        sentencepiece=True,
    ),
    "olmo": Family(
        "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'assistant' %}{{ '<|assistant|>\\n' + m['content'] + eos_token }}"
        "{% if not loop.last %}{{ '\\n' }}{% endif %}{% else %}{{ '<|' + m['role'] + '|>\\n' + m['content'] + '\\n' }}{% endif %}"
        "{% if loop.last and add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}{% endfor %}",
        ("<|endoftext|>",),
        "<|endoftext|>",
        "<|endoftext|>",
    ),
    "command-r": Family(
        "{{ bos_token }}{% for m in messages %}"
        "{% set who = {'system': 'SYSTEM', 'user': 'USER', 'assistant': 'CHATBOT'}[m['role']] %}"
        "{{ '<|START_OF_TURN_TOKEN|><|' + who + '_TOKEN|>' + m['content'].strip() + '<|END_OF_TURN_TOKEN|>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{% endif %}",
        (
            "<BOS_TOKEN>",
            "<|START_OF_TURN_TOKEN|>",
            "<|END_OF_TURN_TOKEN|>",
            "<|USER_TOKEN|>",
            "<|CHATBOT_TOKEN|>",
            "<|SYSTEM_TOKEN|>",
        ),
        "<|END_OF_TURN_TOKEN|>",
        "<BOS_TOKEN>",
    ),
}


@cache
def tokenizer_of(name: str) -> Any:
    family = FAMILIES[name]
    backend = _sentencepiece() if family.sentencepiece else _byte_level()
    backend.add_special_tokens(
        [AddedToken(token, normalized=False, special=True, rstrip=token in family.rstrip) for token in family.control]
    )
    backend.add_tokens([AddedToken(token, normalized=False, special=False) for token in family.plain_added])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token=family.eos,
        bos_token=family.bos,
        pad_token=family.eos,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = family.template
    return tokenizer


def _byte_level() -> Tokenizer:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.ByteLevel(trim_offsets=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(TEXT * 20, trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet))
    return backend


def _sentencepiece() -> Tokenizer:
    backend = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
    strip = decoders.Strip(" ", 1, 0)
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), strip])
    special = [*_SENTENCEPIECE, *(f"<0x{byte:02X}>" for byte in range(256))]
    # Without line ends, which no template of these families wants joined with the text behind them.
    words = [word for text in TEXT for word in text.split()]
    backend.train_from_iterator(words * 20, trainers.BpeTrainer(vocab_size=600, special_tokens=special))
    # Only the first three are control tokens; those of bytes are ordinary ones.
    written = json.loads(backend.to_str())
    written["added_tokens"] = [token for token in written["added_tokens"] if token["content"] in _SENTENCEPIECE]
    return Tokenizer.from_str(json.dumps(written))
