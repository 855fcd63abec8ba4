"""Low-rank adapters, as a config names them."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from steerboard_contracts.fields import Config, Positive
from steerboard_contracts.samples import Finite

_GUIDE = {"source": "LoRA Without Regret (Thinking Machines Lab, 2025)"}


class LoraConfig(Config):
    """Low-rank adapters, arXiv 2106.09685: W + alpha / rank B A, of which A and B are learned."""

    rank: Annotated[
        int,
        Field(
            ge=1,
            le=1024,
            description="Columns of A and B; the more, the more it can learn. Online methods do with few, much data to "
            "imitate needs many.",
            json_schema_extra=_GUIDE,
        ),
    ] = 16
    alpha: Annotated[
        Positive,
        Field(
            description="Weight of the adapters: their update is multiplied with alpha / rank, with rslora "
            "alpha / sqrt(rank).",
            json_schema_extra=_GUIDE,
        ),
    ] = 32.0
    rslora: Annotated[
        bool,
        Field(
            description="Rank-stabilised: alpha / sqrt(rank), so that the update of a high rank is not too small.",
            json_schema_extra={"source": "rsLoRA, arXiv 2312.03732"},
        ),
    ] = False
    dora: Annotated[
        bool,
        Field(
            description="Weight-decomposed: the norm of each row of the weights is learned apart from its direction. "
            "Slower than plain adapters.",
            json_schema_extra={"source": "DoRA, arXiv 2402.09353"},
        ),
    ] = False
    dropout: Annotated[
        Finite,
        Field(
            ge=0,
            lt=1,
            description="Dropout of what goes into the adapters. Like the model's own, it is off in methods that "
            "compare with a reference, and must be 0 where answers are sampled in training.",
        ),
    ] = 0.0
    targets: Annotated[
        Literal["linear", "attention", "experts"],
        Field(
            description="All linear layers, or those of the attention only, which learn less. experts: all linear "
            "layers and every expert of a mixture, whose adapters each have this rank.",
            json_schema_extra=_GUIDE,
        ),
    ] = "linear"
    quantise: Annotated[
        Literal["none", "nf4"],
        Field(
            description="nf4: hold the base's linear layers in 4 bits while it trains; what is saved is not quantised.",
            json_schema_extra={"source": "QLoRA, arXiv 2305.14314"},
        ),
    ] = "none"
    merge: Annotated[
        bool, Field(description="Save a whole model with the adapters folded in; otherwise adapters over their base.")
    ] = True

    @model_validator(mode="after")
    def _experts_can_be_adapted(self) -> LoraConfig:
        given = {"dora": self.dora, "dropout": self.dropout, "quantise": self.quantise != "none"}
        fault = next((name for name, is_set in given.items() if is_set), None)
        if self.targets == "experts" and fault is not None:
            raise ValueError(
                f"targets experts does not go with {fault}: the experts of a layer are one parameter, of which peft "
                "computes a plain update only. Leave it out, or use targets linear"
            )
        return self

    @property
    def scale(self) -> float:
        """What B A is multiplied with."""
        return self.alpha / (math.sqrt(self.rank) if self.rslora else self.rank)
