"""The experts that a decode loop takes down are those of a plain pass over prompt and answer."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import MixtralConfig, MixtralForCausalLM

from steerboard_contracts.decoding import Decoding
from steerboard_workers.alignment.routers import Routers
from steerboard_workers.engines.decoding import Decoder, Stream
from steerboard_workers.engines.routes import RouteTrace
from support.models.tiny_shape import SHAPE

LENGTHS = [1, 9, 3, 14, 2, 6, 11, 5]


@pytest.mark.parametrize("width", [2, 3, 8])
def test_they_are_those_of_a_plain_pass_however_rows_take_turns(width):
    torch.manual_seed(0)
    config = MixtralConfig(**SHAPE, num_local_experts=6, num_experts_per_tok=2)
    model = MixtralForCausalLM(config).eval()
    routers = Routers.of(model)
    trace = RouteTrace(routers)
    decoder = Decoder(model, torch.device("cpu"), 0, 128, width, trace=trace)
    draw = np.random.default_rng(0)
    prompts = [draw.integers(1, 64, length).tolist() for length in (3, 12, 7, 5)]
    # Two answers to each prompt, of which the longest runs on while others take the rows of those that have ended.
    streams = [Stream(prompts[place // 2], place // 2, place) for place in range(8)]
    answers: list[list[int]] = [[] for _ in streams]

    def take(place: int, token: int, log_prob: float) -> bool:
        answers[place].append(token)
        return len(answers[place]) == LENGTHS[place]

    with torch.no_grad():
        traced = {place: trace.take(place) for place in decoder.run(streams, Decoding(temperature=1.0), take)}
        for place, stream in enumerate(streams):
            ids = torch.tensor([[*stream.prompt, *answers[place]]])
            with routers.recording() as routes:
                model(input_ids=ids)
            whole = torch.stack([layer.chosen for layer in routes], dim=1).numpy()
            assert traced[place].dtype == np.uint8
            assert np.array_equal(np.sort(traced[place], -1), np.sort(whole[:-1], -1))
