"""Whom each source prefers at each prompt, kept with the report that counts it: so a figure leads to its items."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steerboard.evaluation.report.data import EvaluationData, Floats
from steerboard.evaluation.report.sources import Source

Signs = NDArray[np.int8]
MISSING = 2


@dataclass(frozen=True)
class PairOutcomes:
    """What the items of a report are found by. `lengths` (prompts, entrants), NaN where there is no answer."""

    entrants: list[str]
    positions: list[int]
    lengths: Floats
    sources: Sequence[Source]

    @classmethod
    def of(cls, data: EvaluationData, sources: Sequence[Source], lengths: Floats) -> PairOutcomes:
        return cls(data.names(), [prompt.position for prompt in data.prompts], lengths, sources)

    def columns(self) -> dict[str, Any]:
        """Columns of `EvaluationReportRow`."""
        return {
            "entrants": self.entrants,
            "positions": np.array(self.positions, dtype="<i4").tobytes(),
            "lengths": _by_entrant(self.lengths),
        }

    def rows(self, evaluation_id: uuid.UUID) -> list[dict[str, Any]]:
        """Rows of `ReportSource`."""
        return [
            {
                "evaluation_id": evaluation_id,
                "place": place,
                "by": source.by,
                "source": source.label,
                "valid": source.valid,
                "signs": _packed(source.signs),
                "flips": None if source.flips is None else _packed(source.flips),
                "scores": _by_entrant(source.scores),
            }
            for place, source in enumerate(self.sources)
        ]


def _by_entrant(values: Floats) -> bytes:
    """(prompts, entrants) -> float64 entrant by entrant."""
    return np.ascontiguousarray(values.T, dtype="<f8").tobytes()


def _packed(values: Floats) -> bytes:
    """(prompts, pairs), NaN for none -> int8 pair by pair."""
    return np.where(np.isfinite(values), values, MISSING).astype(np.int8).T.tobytes()


def unpacked(packed: bytes, prompts: int) -> Signs:
    """(pairs, prompts)."""
    return np.frombuffer(packed, dtype=np.int8).reshape(-1, prompts) if prompts else np.empty((0, 0), dtype=np.int8)
