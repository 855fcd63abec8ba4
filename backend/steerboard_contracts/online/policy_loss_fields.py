"""Fields of policy losses, as configs with a default of their own declare them again.

A config adds where its default is from: `reducer: Annotated[ReducerField, Field(json_schema_extra={"source": ...})]`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import NonNegative

Ratio = Literal["token", "sequence"]
Clip = Literal["surrogate", "weight", "gate"]
Reducer = Literal["token", "sequence", "constant"]
KlPlace = Literal["reward", "loss"]

KlWeight = Annotated[
    NonNegative,
    Field(description="Divergence (KL) from the reference: its weight; 0 turns it off, and needs no reference."),
]
KlIn = Annotated[KlPlace, Field(description="Divergence (KL) is subtracted from the reward or added to the loss.")]
RatioField = Annotated[
    Ratio,
    Field(
        description="Whether each token has its own ratio to the policy that sampled, or all tokens of an answer "
        "the geometric mean of these, so that an answer is clipped as a whole."
    ),
]
ClipField = Annotated[
    Clip,
    Field(
        description="surrogate: beyond clip_low and clip_high a ratio gains nothing, and has no gradient; weight: "
        "every token is learned, by a ratio that is bounded by them; gate: the further a ratio is from 1, the less "
        "it counts, by gate_positive and gate_negative."
    ),
]
ReducerField = Annotated[
    Reducer,
    Field(
        description="The loss is the mean over all tokens, the mean over answers of the mean over their tokens, or "
        "the sum over tokens divided by answers times the longest answer that is allowed."
    ),
]
Minibatches = Annotated[
    int,
    Field(
        ge=1,
        le=256,
        description="Optimiser steps into which the answers of one sampling are split. With one alone, all ratios "
        "are 1, and the clip has no effect.",
    ),
]
