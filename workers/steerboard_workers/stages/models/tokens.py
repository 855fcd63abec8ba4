"""Whether two models read the same token ids as the same text, and conversations as the same token ids."""

from __future__ import annotations

from typing import Any

from steerboard_contracts.conditions.score_words import is_score_token
from steerboard_contracts.errors import BadInput
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.stages.models.model_io import load_tokenizer
from steerboard_workers.stages.runtime import Stage

# What templates do differently: where a turn begins and ends, a system turn, what is written where there is none.
_CONVERSATIONS: tuple[list[dict[str, str]], ...] = (
    [{"role": "user", "content": "a"}],
    [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],
    [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}],
)


def reads_otherwise(own: Renderer, ours: Renderer) -> str | None:
    """How a model of the same vocabulary reads other token ids of a conversation than the model to train does: by its
    template, or by a shorter window. None where it does not."""
    if any(_ids(own, messages) != _ids(ours, messages) for messages in _CONVERSATIONS):
        return "has another template than the model to train"
    if own.max_length < ours.max_length:
        return f"reads at most {own.max_length} tokens, and the model to train {ours.max_length}"
    return None


def _ids(renderer: Renderer, conversation: list[dict[str, str]]) -> list[int] | None:
    """Returns None for a conversation that the template refuses."""
    try:
        return renderer.prompts_ids([conversation])[0] + [renderer.end_id]
    except BadInput:
        return None


def check_tokenizer(stage: Stage, source: str, tokenizer: Any, whose: str = "the model to train") -> None:
    """Raises `BadInput` (`tokenizer_differs`) unless the token ids of `tokenizer` mean the same to the model of input
    `source`."""
    with stage.using_model(source, "tokenising with"):
        theirs = load_tokenizer(stage.model_path(source)).get_vocab()
    # Padding is never read, and some models have none; answers never have tokens of scores.
    ours = {t: n for t, n in tokenizer.get_vocab().items() if t != tokenizer.pad_token and not is_score_token(t)}
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
