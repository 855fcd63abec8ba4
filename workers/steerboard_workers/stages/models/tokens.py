"""Whether two models read the same token ids as the same text."""

from __future__ import annotations

from typing import Any

from steerboard_contracts.errors import BadInput
from steerboard_workers.stages.models.model_io import load_tokenizer
from steerboard_workers.stages.runtime import Stage


def check_tokenizer(stage: Stage, source: str, tokenizer: Any, whose: str = "the model to train") -> None:
    """Raises `BadInput` (`tokenizer_differs`) unless the token ids of `tokenizer` mean the same to the model of input
    `source`."""
    with stage.using_model(source, "tokenising with"):
        theirs = load_tokenizer(stage.model_path(source)).get_vocab()
    ours = tokenizer.get_vocab()
    ours.pop(tokenizer.pad_token, None)  # never read, and some models have none
    wrong = next((token for token, number in ours.items() if theirs.get(token) != number), None)
    if wrong is None:
        return
    number = theirs.get(wrong)
    differs = "is unknown to it" if number is None else f"is number {number} there"
    raise BadInput(
        f"{stage.model(source).name}, the input {source}, has another tokenizer than {whose}: "
        f"token {wrong!r}, number {ours[wrong]} here, {differs}",
        code="tokenizer_differs",
        hint="Take a model of the same family, such as the one that training starts from.",
    )
