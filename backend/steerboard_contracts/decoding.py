"""How the answers of a policy are decoded, and what it is asked for."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.engine import WithEngine
from steerboard_contracts.errors import BadInput, ErrorLocation
from steerboard_contracts.fields import Config, Count, NonNegative, Precision
from steerboard_contracts.samples import Finite

RequestedCondition = Annotated[
    Condition | None,
    Field(
        description="Requested score of a policy that takes one; of several attributes, a text such as "
        "`helpfulness:4,verbosity:2`."
    ),
]


GuidanceField = Annotated[
    Finite,
    Field(
        ge=0,
        le=20,
        description="Classifier-free guidance w: how strongly a requested score is followed. Tokens are drawn from "
        "u + w (c - u), the logits with the score (c) and without (u), in two passes. 1: no guidance.",
        json_schema_extra={"source": "arXiv 2207.12598; language models: arXiv 2306.17806, Eq. 7"},
    ),
]


class Decoding(Config):
    """temperature 0 is greedy. `n` answers for each prompt, each with a seed of its own."""

    temperature: Annotated[NonNegative, Field(description="Sampling temperature; 0 is greedy.")] = 0.0
    top_p: Annotated[
        Finite,
        Field(gt=0, le=1, description="Nucleus sampling: from the likeliest tokens with this total probability."),
    ] = 1.0
    top_k: Annotated[int, Field(ge=0, description="Likeliest tokens that are sampled from; 0: all.")] = 0
    n: Annotated[int, Field(ge=1, le=256, description="Answers for each prompt.")] = 1
    max_new_tokens: Annotated[
        Count | None, Field(description="Tokens of an answer; by default 256, or half of a smaller model's window.")
    ] = None
    stop: list[str] = Field(default=[], description="Texts that end an answer, and are not part of it.")
    guidance: GuidanceField = 1.0

    @property
    def guided(self) -> bool:
        return self.guidance != 1


def no_guidance(guidance: float, of: str) -> BadInput:
    """`of`: what cannot be guided, such as "of endpoint 'x', which ..."."""
    return BadInput(
        f"guidance {guidance:g} was requested {of}",
        code="no_guidance",
        hint="Guide policies that take scores, or an endpoint of `steerboard models serve --guidance` that serves one; "
        "leave `guidance` out for others.",
        errors=[ErrorLocation(location="decoding.guidance", message="needs a policy that takes scores")],
    )


def guided_suffix(guidance: float) -> str:
    """A suffix for names of what is guided: `_w3`."""
    return f"_w{guidance:g}"


# Words for a whole decoding.
NAMED: dict[str, dict[str, Any]] = {"greedy": {}, "sampled": {"temperature": 1.0}}


DecodingField = Annotated[Decoding, Field(default_factory=Decoding)]


class WithDecoding(WithEngine):
    decoding: DecodingField
    batch_size: Annotated[Count, Field(description="Sequences decoded together.")] = 64
    precision: Precision = "auto"
    seed: int = 0

    @model_validator(mode="before")
    @classmethod
    def _named_decoding(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("decoding"), str):
            return {**value, "decoding": NAMED.get(value["decoding"], value["decoding"])}
        return value


MOST_SAMPLES = 64
BestOf = Annotated[
    int | None,
    Field(
        ge=2,
        le=MOST_SAMPLES,
        description="Sample this many answers to each prompt and keep the one that a reward model scores highest.",
    ),
]
