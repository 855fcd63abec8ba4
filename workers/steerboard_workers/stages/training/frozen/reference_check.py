"""A policy and a reference that are one model have equal log-probs: if not, one of them is not what it should be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.errors import SteerboardError
from steerboard_workers.alignment.examples import Example


class ReferenceDiffers(SteerboardError):
    """Equal weights gave different log-probs to the same tokens."""

    code = "reference_differs"
    status = 422
    title = "The reference's log-probs are wrong"


def tolerance(mixed: bool, quantised: bool) -> float:
    """Nats a token by which two ways to cut the same passes may differ: rounding, no more."""
    return 0.05 if mixed or quantised else 1e-4


def check_equal(policy: Sequence[NDArray[np.float32]], examples: Sequence[Example], name: str, bound: float) -> None:
    """Called before the first step: `policy` has (responses,) log-probs of each example, which must be those that it
    has of the frozen model `name`, to `bound` nats per token. Raises `ReferenceDiffers` with the first row that breaks
    it.
    """
    for ours, example in zip(policy, examples, strict=True):
        theirs = example.frozen_log_probs[name]
        for number, count in enumerate(example.label_counts):
            if not abs(float(ours[number]) - float(theirs[number])) <= bound * (1 + count):
                which = f", response {number + 1}" if len(example.responses) > 1 else ""
                raise ReferenceDiffers(
                    f"{name} and the model to train have the same weights, but log-probs {theirs[number]:.4f} and "
                    f"{ours[number]:.4f} for row {example.row}{which} ({count} tokens)",
                    hint="Train with precision fp32 and batching padded, and report it.",
                )
