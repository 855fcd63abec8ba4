"""The places at which the steps of an answer end in its tokens, with tokenizers of several families."""

from __future__ import annotations

import pytest

from steerboard_contracts.errors import BadInput
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.alignment.step_ends import StepEnds, step_bounds

PROMPT = [{"role": "user", "content": "Why is the sky blue?"}]
TOKENIZERS = ("own_tokenizer", "metaspace_tokenizer", "chat_tokenizer")


@pytest.fixture(params=TOKENIZERS)
def renderer(request):
    tokenizer = request.getfixturevalue(request.param)
    return Renderer(tokenizer, "chat" if request.param == "chat_tokenizer" else "plain", 256, whole=True)


def read_texts(renderer: Renderer, answer: str, separator: str) -> list[str]:
    """What a causal model has seen of an answer at each place at which it is read."""
    (group,) = renderer.render_groups([PROMPT], [[answer]])
    places = StepEnds(renderer.tokenizer, renderer.stop_ids, separator).of(group.responses[0], group.leads[0])
    ids = group.responses[0]
    assert places[-1] == len(ids) - 1
    seen = [renderer.tokenizer.decode(ids[: at + 1], clean_up_tokenization_spaces=False) for at in places]
    return [text.removeprefix(" ") for text in seen]


@pytest.mark.parametrize("separator", ["\n", "\n\n", " #", "漢"])
def test_a_step_is_read_behind_its_separator_and_before_the_next_step(renderer, separator):
    steps = ["The sky is blue.", "ünïcödé light", "12 + 5 = 17"]
    first, second, whole = read_texts(renderer, separator.join(steps), separator)
    assert first == steps[0] + separator
    assert "ünïcödé light" in second
    assert "12" not in second
    assert whole.startswith(separator.join(steps))


def test_blank_steps_and_separators_at_the_ends_are_no_steps(renderer):
    assert len(read_texts(renderer, "\nblue\n\n \nlight\n\n", "\n")) == 2
    assert len(read_texts(renderer, "blue", "\n")) == 1
    assert len(read_texts(renderer, "\n", "\n")) == 1


def test_a_step_is_not_read_in_a_token_that_has_the_beginning_of_the_next_one(own_tokenizer):
    """Words have their leading space in one token: with a space as separator no token ends with it."""
    ends = StepEnds(own_tokenizer, [own_tokenizer.eos_token_id], " ")
    ids = own_tokenizer("light waves scatter", add_special_tokens=False)["input_ids"]
    seen = [own_tokenizer.decode(ids[: at + 1]) for at in ends.of(ids)]
    assert seen == ["light", "light waves", "light waves scatter"]


def test_a_separator_that_a_tokenizer_does_not_know_is_refused(metaspace_tokenizer, own_tokenizer):
    StepEnds(own_tokenizer, [own_tokenizer.eos_token_id], "ки").check()
    with pytest.raises(BadInput, match="does not keep the separator") as refused:
        StepEnds(metaspace_tokenizer, [metaspace_tokenizer.eos_token_id], "ки").check()
    assert refused.value.code == "bad_config"


def test_bounds_are_of_steps_that_have_text():
    assert step_bounds("a\nb\n\n c\n", "\n") == [(0, 2), (2, 5), (5, None)]
    assert step_bounds(" \n", "\n") == []
