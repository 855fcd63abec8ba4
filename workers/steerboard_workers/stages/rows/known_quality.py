"""What is known of the answers to synthetic prompts, in the place of a reward model."""

from __future__ import annotations

from collections.abc import Iterable

from steerboard_contracts.errors import BadInput
from steerboard_workers.alignment.rendering.templates import turns_of
from steerboard_workers.stages.models.scoring import Scorable
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.synthetic import quality


class KnownQuality:
    """Scores as `cached_scoring.Scorer` does, but has nothing to keep: a quality is looked up immediately."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def score(self, samples: Iterable[Scorable], total: int, unit: str) -> None:
        self._stage.progress(total, total, unit, "looking the quality up")

    def value(self, sample: Scorable) -> float:
        """From 0 to 1. Raises `BadInput` (`not_synthetic`)."""
        try:
            return quality(turns_of(sample.prompt)[-1].content, sample.response)
        except ValueError as error:
            raise BadInput(
                f"the known quality of synthetic answers was requested, but {error}",
                code="not_synthetic",
                hint="Leave `quality` out when the prompts are not those of the synthetic demo data.",
            ) from error
