"""Answers that take the rows of others which have ended are what they would be alone, and no one waits for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, Gemma2Config, GPT2Config, LlamaConfig, MistralConfig

from steerboard_contracts.decoding import Decoding
from steerboard_workers.engines.cache import growing_cache, takes_rows
from steerboard_workers.engines.decoding import Decoder, Stream
from steerboard_workers.engines.sampling import stream_key
from support.models.tiny_shape import SHAPE

MODELS = {
    "llama": LlamaConfig(**SHAPE),
    # Rotary positions forgive a shift, learned ones do not.
    "gpt2": GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=128, pad_token_id=0),
    # Their layers keep a window of tokens each, and so whole batches wait for their last answer.
    "mistral": MistralConfig(**SHAPE, sliding_window=16),
    "gemma2": Gemma2Config(**SHAPE, sliding_window=16),
}
LENGTHS = {
    # Some continue while the other places are taken again and again.
    "long and short": (3, 90, 2, 5, 1, 7, 2, 40, 1, 1, 100, 6, 4, 30, 2, 8, 1, 3, 12, 5, 9, 60, 2, 1),
    # No one needs the columns of the first ones any more when the others continue.
    "in waves": (70, 72, 74, 76, 78, 80, 30, 35, 40, 45, 50, 75, 30, 35, 60, 25, 20, 15, 40, 5, 4, 3, 2, 1),
}


def drawn(model, width: int, streams: list[Stream], lengths: Sequence[int]):
    """(tokens and log-probs by place, the places as they ended, how many forward passes it took)."""
    tokens: dict[int, list[int]] = {}
    measured: dict[int, list[float]] = {}
    passes = 0

    def count(*_):
        nonlocal passes
        passes += 1

    def take(place: int, token: int, log_prob: float) -> bool:
        tokens.setdefault(place, []).append(token)
        measured.setdefault(place, []).append(log_prob)
        return len(tokens[place]) == lengths[place]

    handle = model.register_forward_hook(count)
    decoder = Decoder(model, torch.device("cpu"), 0, 128, width, log_probs=True)
    with torch.no_grad():
        ended = list(decoder.run(streams, Decoding(temperature=1.0), take))
    handle.remove()
    return tokens, measured, ended, passes


def streams(answers: int = 2) -> list[Stream]:
    """`answers` to each prompt, of 3 to 20 tokens, in no order of their lengths."""
    draw = np.random.default_rng(5)
    prompts = [draw.integers(3, 64, draw.integers(3, 20)).tolist() for _ in range(24 // answers)]
    return [Stream(prompt, row, stream_key(9, row, n)) for row, prompt in enumerate(prompts) for n in range(answers)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("answers", "lengths"), [(1, "long and short"), (2, "in waves")])
def test_an_answer_is_the_same_alone_and_in_a_row_that_others_left(name, answers, lengths):
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(MODELS[name]).eval()
    asked = streams(answers)
    together, log_probs, ended, _ = drawn(model, 5, asked, LENGTHS[lengths])
    for place in range(0, len(asked), 3):
        stream = asked[place]
        alone, its_own, _, _ = drawn(model, 1, [stream], (LENGTHS[lengths][place],))
        assert together[place] == alone[0]
        assert log_probs[place] == pytest.approx(its_own[0], abs=1e-4)
    assert sorted(ended) == list(range(len(asked)))


@pytest.mark.parametrize("name", MODELS)
def test_an_answer_goes_on_when_a_much_longer_prompts_one_has_ended(name):
    """Nobody needs the columns of that prompt any more."""
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(MODELS[name]).eval()
    asked = [Stream(list(range(3, 60)) + [7] * 33, 0, stream_key(1, 0, 0)), Stream([5, 6, 7], 1, stream_key(1, 1, 0))]
    together, log_probs, _, _ = drawn(model, 2, asked, (2, 30))
    alone, its_own, _, _ = drawn(model, 1, asked[1:], (30,))
    assert together[1] == alone[0]
    assert log_probs[1] == pytest.approx(its_own[0], abs=1e-4)


def test_short_answers_do_not_wait_for_a_long_one():
    model = AutoModelForCausalLM.from_config(MODELS["llama"]).eval()
    lengths = (100, *[4] * 49)
    asked = [Stream([5, 6, 7], 0, stream_key(1, 0, n)) for n in range(50)]
    _, _, ended, passes = drawn(model, 5, asked, lengths)
    # The four other rows take 49 short ones; batch after batch would take 99 + 9 * 3 steps and 10 starts.
    assert passes <= 99 + 15
    assert ended[-1] == 0
    _, _, _, alone = drawn(model, 1, asked[:1], lengths)
    assert alone == 100


@pytest.mark.parametrize("name", MODELS)
def test_only_caches_of_whole_sequences_take_new_rows(name):
    assert takes_rows(growing_cache(MODELS[name])) == (name in ("llama", "gpt2"))
