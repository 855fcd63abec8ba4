"""Weights that others have published: loaded as what config.json names, and checked against its tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from steerboard_contracts.errors import BadModel
from steerboard_workers.alignment.rendering.templates import Template
from steerboard_workers.stages.models.foreign import its_own_fault, read_json
from steerboard_workers.stages.models.model_io import read_info


def load_foreign(folder: Path, tokenizer: Any) -> tuple[Any, list[str]]:
    """A causal language model, or a reward model with one label, by the architecture that config.json names; and the
    names of tensors that it does not read.

    Where config.json ties the LM head to the embeddings and the weights have another head, config.json is changed to
    what the weights are. Raises `BadModel`.
    """
    rewards = read_info(folder).role == "reward"
    kind = AutoModelForSequenceClassification if rewards else AutoModelForCausalLM
    with its_own_fault(f"the folder does not load as a {'reward' if rewards else 'language'} model"):
        model, report = kind.from_pretrained(
            folder, dtype="auto", use_safetensors=True, trust_remote_code=False, output_loading_info=True
        )
    if report["missing_keys"]:
        missing = sorted(report["missing_keys"])
        raise BadModel(f"{len(missing)} tensors of {type(model).__name__} are not in the folder, such as {missing[0]}")
    if report["mismatched_keys"]:
        first = sorted(map(str, report["mismatched_keys"]))[0]
        raise BadModel(f"tensors of the folder do not have the shapes in config.json, such as {first[:200]}")
    if rewards and model.config.num_labels != 1:
        raise BadModel(
            f"{type(model).__name__} has {model.config.num_labels} labels, "
            f"{', '.join(str(name) for name in model.config.id2label.values())[:200]}; a reward model has one",
            hint="Give a model whose head is one number, such as one trained with num_labels=1.",
        )
    _check_vocabulary(model, tokenizer)
    _untie(folder, model)
    return model, sorted(report["unexpected_keys"])


def _check_vocabulary(model: Any, tokenizer: Any) -> None:
    """Embeddings may have more rows than the tokenizer has tokens. Fewer are right only where no text and no template
    leads to the tokens beyond them."""
    rows = model.get_input_embeddings().num_embeddings
    beyond = {token: number for token, number in tokenizer.get_vocab().items() if number >= rows}
    if not beyond:
        return
    special = {token.content for token in tokenizer.added_tokens_decoder.values() if token.special}
    written = {tokenizer.eos_token, tokenizer.bos_token, tokenizer.pad_token, tokenizer.unk_token}
    if tokenizer.chat_template:
        written.add(Template(tokenizer, "chat").end_token)
    used = sorted(token for token in beyond if token in written or token not in special)
    if used:
        raise BadModel(
            f"the tokenizer has tokens for which the model has no embedding: {used[0]!r} is number {beyond[used[0]]}, "
            f"and the embeddings have {rows} rows",
            hint="Save the model with resized embeddings (resize_token_embeddings), or the tokenizer that it was "
            "trained with.",
        )


def _untie(folder: Path, model: Any) -> None:
    head, embeddings = model.get_output_embeddings(), model.get_input_embeddings()
    config = model.config.get_text_config()
    tied = getattr(config, "tie_word_embeddings", False) or getattr(model.config, "tie_word_embeddings", False)
    if head is None or not tied or head.weight is embeddings.weight:
        return
    path = folder / "config.json"
    written = read_json(path)
    for part in (written, *(value for value in written.values() if isinstance(value, dict))):
        if part is written or "tie_word_embeddings" in part:
            part["tie_word_embeddings"] = False
    path.write_text(json.dumps(written, indent=2) + "\n")
