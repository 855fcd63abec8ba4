"""Rewards by vLLM's pooling: the raw logit at the last token of each sequence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steerboard_workers.alignment.rendering.render import Rendered, Renderer
from steerboard_workers.engines.vllm.host import VllmHost
from steerboard_workers.engines.vllm.watchdog import EngineFailed

# So many wait in the engine: enough to fill its batches, few enough that a kill loses little.
BLOCK = 512


class VllmRewards:
    """`host` runs a sequence classifier with one label."""

    def __init__(self, host: VllmHost, renderer: Renderer) -> None:
        self._host = host
        self.renderer = renderer

    def score(self, sequences: Sequence[Rendered], batch_tokens: int) -> Iterator[tuple[list[int], list[float]]]:
        """Longest sequences first. vLLM batches by itself. Raises `EngineFailed`."""
        from vllm import PoolingParams

        order = sorted(range(len(sequences)), key=lambda place: -len(sequences[place].ids))
        for start in range(0, len(order), BLOCK):
            places = order[start : start + BLOCK]
            for place in places:
                params = PoolingParams(task="classify", use_activation=False)
                self._host.add(str(place), sequences[place].ids, params)
            rewards = {int(output.request_id): float(output.outputs.data[0]) for output in self._host.outputs()}
            if len(rewards) < len(places):
                lost = len(places) - len(rewards)
                raise EngineFailed(f"{lost} rewards never arrived", hint="The run's log has vLLM's output.")
            yield places, [rewards[place] for place in places]
