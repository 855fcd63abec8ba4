"""Text generation over a transformers model. Prompts of similar length are decoded together, the longest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from steerboard_contracts.decoding import Decoding
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.engines.answers import Answer, Writer, asked, end_ids
from steerboard_workers.engines.decoding import Decoder, Stream
from steerboard_workers.engines.protocol import Completion, Delta, Request
from steerboard_workers.engines.sampling import stream_key


@dataclass
class _Drawn(Answer):
    """An answer with its prompt and the key of its random stream."""

    prompt: list[int] = field(default_factory=list)
    key: int = 0
    against: list[int] | None = None


class TransformersEngine:
    """`model` is a causal LM in eval mode on `device`. Stops on the renderer's and the model's own end tokens."""

    def __init__(self, model: Any, renderer: Renderer, device: torch.device, batch_size: int = 64) -> None:
        self.model = model
        self.renderer = renderer
        self.device = device
        self.batch_size = batch_size
        self.stop_ids = end_ids(renderer, getattr(model.generation_config, "eos_token_id", None))
        pad, silent = int(renderer.tokenizer.pad_token_id), renderer.silent_ids
        self._decoder = Decoder(model, device, pad, renderer.max_length, batch_size, silent=silent)

    def generate(
        self,
        requests: Sequence[Request],
        decoding: Decoding,
        seed: int,
        on_delta: Callable[[Delta], None] | None = None,
    ) -> Iterator[Completion]:
        """Completions as they end. Prompts that leave no room are cut from the left.

        Raises `BadInput` (`too_many_new_tokens`) when `max_new_tokens` alone fills the model's window.
        """
        answers = [
            _Drawn(
                tokenised.request.row,
                n,
                tokenised.limit,
                prompt_tokens=len(tokenised.prompt),
                prompt=tokenised.prompt,
                key=stream_key(seed, tokenised.request.row, n),
                against=tokenised.against,
            )
            for tokenised in asked(self.renderer, requests, decoding)
            for n in range(decoding.n)
        ]
        writer = Writer(self.renderer, self.stop_ids, decoding.stop, on_delta)
        yield from self._decode(answers, decoding, writer)

    @torch.inference_mode()
    def _decode(self, answers: list[_Drawn], decoding: Decoding, writer: Writer) -> Iterator[Completion]:
        done: dict[int, Completion] = {}

        def take(place: int, token: int, _: float) -> bool:
            completion = writer.take(answers[place], [token])
            if completion is not None:
                done[place] = completion
            return completion is not None

        for place in self._decoder.run([Stream(a.prompt, a.row, a.key, a.against) for a in answers], decoding, take):
            yield done.pop(place)
