"""Weights that others have published: loaded as what config.json names, and checked against its tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from steerboard_contracts.errors import BadModel
from steerboard_workers.alignment.rendering.templates import Template
from steerboard_workers.stages.models.adapted_layers import HEAD
from steerboard_workers.stages.models.foreign import its_own_fault, read_json
from steerboard_workers.stages.models.model_io import read_info
from steerboard_workers.stages.models.model_saving import save_weights


def load_foreign(folder: Path, tokenizer: Any, label: int | None = None) -> tuple[Any, list[str]]:
    """A causal language model, or a reward model with one label, by the architecture that config.json names; and the
    names of tensors that it does not read.

    Of a classifier with several labels the one numbered `label` is kept. Where config.json ties the LM head to the
    embeddings and the weights have another head, config.json is changed to what the weights are. Raises `BadModel`.
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
    if label is not None and not rewards:
        raise BadModel(f"{type(model).__name__} has no labels, and label: {label} chooses one", hint="Omit `label`.")
    if rewards and model.config.num_labels != 1:
        _keep_label(folder, model, label)
    _check_vocabulary(model, tokenizer)
    _untie(folder, model)
    return model, sorted(report["unexpected_keys"])


def _keep_label(folder: Path, model: Any, label: int | None) -> None:
    """Leave one row of the head, in the folder's weights as well. Raises `BadModel`, naming the labels, when none is
    chosen or it is not one of them."""
    names = [str(name) for _, name in sorted(model.config.id2label.items())]
    head = getattr(model, HEAD, None)
    if label is None or label >= len(names) or not isinstance(head, nn.Linear):
        numbered = ", ".join(f"{number} {name}" for number, name in enumerate(names))[:200]
        raise BadModel(
            f"{type(model).__name__} has {len(names)} labels: {numbered}; a reward model has one",
            hint="Choose the one that is the reward, as with label: 0, or give a model trained with num_labels=1.",
        )
    with torch.no_grad():
        head.weight = nn.Parameter(head.weight[label : label + 1].clone())
        if head.bias is not None:
            head.bias = nn.Parameter(head.bias[label : label + 1].clone())
    head.out_features = 1
    model.config.id2label, model.config.label2id = {0: names[label]}, {names[label]: 0}
    for path in (*folder.glob("*.safetensors"), *folder.glob("*.safetensors.index.json")):
        path.unlink()
    save_weights(folder, model)


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
