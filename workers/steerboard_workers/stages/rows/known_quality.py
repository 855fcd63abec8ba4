"""Programs that know how good an answer is, in the place of a reward model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from steerboard_contracts.errors import BadInput
from steerboard_contracts.known_quality import KnownQuality
from steerboard_contracts.tools import answer_text
from steerboard_workers.alignment.rendering.templates import turns_of
from steerboard_workers.stages.models.scoring import Scorable
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.synthetic import quality

# The compound score of VADER is from -1 to 1; scores that a policy is asked for are from -5 to 5.
SENTIMENT_LIMIT = 5.0


class Program(Protocol):
    def value(self, sample: Scorable) -> float: ...


class SyntheticQuality:
    """The quality of answers to the synthetic demo data, from 0 to 1."""

    def value(self, sample: Scorable) -> float:
        """Raises `BadInput` (`not_synthetic`)."""
        try:
            return quality(turns_of(sample.prompt)[-1].content, answer_text(sample.response))
        except ValueError as error:
            raise BadInput(
                f"the known quality of synthetic answers was requested, but {error}",
                code="not_synthetic",
                hint="Leave `quality` out when the prompts are not those of the synthetic demo data.",
            ) from error


class Sentiment:
    """How positive an English answer is, from -5 to 5: five times the compound score of VADER (Hutto and Gilbert,
    ICWSM 2014)."""

    def __init__(self) -> None:
        """Raises `BadInput` (`missing_package`)."""
        try:
            from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer
        except ImportError as error:
            raise BadInput(
                "`quality: sentiment` needs the package vaderSentiment, which this worker does not have",
                code="missing_package",
                hint="Install it on every worker: pip install 'steerboard[sentiment]'.",
            ) from error
        self._analyzer = SentimentIntensityAnalyzer()

    def value(self, sample: Scorable) -> float:
        return SENTIMENT_LIMIT * float(self._analyzer.polarity_scores(answer_text(sample.response))["compound"])


class KnownScores:
    """Scores as `cached_scoring.Scorer` does, but has nothing to keep: a program is quick."""

    def __init__(self, stage: Stage, kind: KnownQuality) -> None:
        """Raises `BadInput` (`missing_package`)."""
        self._stage, self._program = stage, known_quality(kind)

    def score(self, samples: Iterable[Scorable], total: int, unit: str) -> None:
        self._stage.progress(total, total, unit, "rating")

    def value(self, sample: Scorable) -> float:
        """Raises `BadInput` (`not_synthetic`)."""
        return self._program.value(sample)


def known_quality(kind: KnownQuality) -> Program:
    """Raises `BadInput` (`missing_package`)."""
    return Sentiment() if kind == "sentiment" else SyntheticQuality()
