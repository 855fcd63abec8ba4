"""Tokens that are written for scores: put into a tokenizer, and into the rows of a model's embeddings and head.

A token begins as the mean of the tokens of the word that it is written for, so that an untrained policy reads it nearly
as that word.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from steerboard_contracts.conditions.score_words import Writing
from steerboard_contracts.errors import BadInput


def add_score_tokens(tokenizer: Any, writing: Writing) -> None:
    """Adds control tokens, of which no text of a user becomes one. Those that it has keep their numbers."""
    from tokenizers import AddedToken

    added = [AddedToken(token, special=True, normalized=False) for token in writing.tokens]
    tokenizer.add_tokens(added, special_tokens=True)


def token_ids(tokenizer: Any, writing: Writing) -> list[int]:
    """Ids from the lowest score to the highest."""
    return [int(number) for number in tokenizer.convert_tokens_to_ids(list(writing.tokens))]


@torch.no_grad()
def set_rows(model: Any, tokenizer: Any, writing: Writing) -> None:
    """Give each token the mean of its word's rows, in the embeddings and in a head that is not tied to them. Rows that
    the vocabulary has to spare are taken before it grows. Every process of a model that ZeRO-3 spreads calls this.

    Raises `BadInput` (`bad_score_tokens`).
    """
    ids = token_ids(tokenizer, writing)
    words = [word_ids(tokenizer, writing, part) for part in range(len(ids))]
    embeddings = model.get_input_embeddings()
    if not isinstance(embeddings, nn.Embedding) or model.get_output_embeddings() is None:
        raise BadInput(
            f"score_style tokens cannot give {type(model).__name__} more tokens: it has no embeddings and head that "
            "can grow",
            code="bad_score_tokens",
            hint="Use score_style: words.",
        )
    if max(ids) >= embeddings.num_embeddings:
        model.resize_token_embeddings(max(ids) + 1, mean_resizing=False)
    head = model.get_output_embeddings()
    rows = [model.get_input_embeddings().weight, head.weight, getattr(head, "bias", None)]
    for weight in {id(row): row for row in rows if row is not None}.values():
        with _whole(weight):
            if weight.numel():  # under ZeRO-3 on the process that spreads it
                for number, of_word in zip(ids, words, strict=True):
                    weight[number] = weight[of_word].float().mean(0).to(weight.dtype)


def word_ids(tokenizer: Any, writing: Writing, part: int) -> list[int]:
    """The tokens of a part's word where style words would write it. Raises `BadInput` (`bad_score_tokens`)."""
    word = writing.words[part]
    before, after = ("", ":") if writing.place == "answer" else writing.phrase.split("{}")
    start = len(before)
    read = tokenizer(before + word + after, add_special_tokens=False, return_offsets_mapping=True)
    places = zip(read["input_ids"], read["offset_mapping"], strict=True)
    ids = [number for number, (first, last) in places if first < start + len(word) and last > start]
    if not ids:
        raise BadInput(
            f"the model's tokenizer has no tokens for {word!r}, which {writing.tokens[part]} is to begin as",
            code="bad_score_tokens",
            hint="Write other score_words.",
        )
    return ids


@contextlib.contextmanager
def _whole(weight: nn.Parameter) -> Iterator[None]:
    """A context in which ZeRO-3 has gathered it, and what the first process writes reaches the others."""
    if not hasattr(weight, "ds_id"):
        yield
        return
    import deepspeed

    with deepspeed.zero.GatheredParameters([weight], modifier_rank=0):
        yield
