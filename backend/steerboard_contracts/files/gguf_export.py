"""What an export as GGUF made, and how it answers next to the model that it was made of."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

GgufPrecision = Annotated[
    Literal["f16", "q8_0"],
    Field(description="`f16`: 16 bits for each weight. `q8_0`: blocks of 8 bits, about half the size."),
]


class GgufDifference(BaseModel):
    """One point in which llama.cpp does otherwise than transformers. `template`: the prompt's text; `tokens`: the ids
    of an equal text; `answer`: the likeliest tokens after equal ids. `asked`: which prompt. `at`: the first character
    or token that differs. `margin`: by how many nats transformers prefers its own token to the other."""

    what: Literal["template", "tokens", "answer"]
    asked: str
    at: int
    transformers: str
    llama_cpp: str
    margin: float | None = None


class GgufResult(BaseModel):
    """`file`: its name in the export. `merged`: it was made of an adapter and its base. `prompts`: how many were
    compared, each with the first `tokens` tokens of its likeliest answer; 0 where llama.cpp did not run the file, with
    the reason in `unchecked`."""

    file: str
    precision: GgufPrecision
    size: int
    architecture: str
    merged: bool
    prompts: int = 0
    tokens: int = 0
    differences: list[GgufDifference] = []
    unchecked: str | None = None

    @property
    def words(self) -> str:
        """What the check found, in a sentence."""
        if self.unchecked is not None:
            return f"Not checked: {self.unchecked}"
        same = f"{self.prompts} prompts, each with the first {self.tokens} tokens of its likeliest answer"
        if not self.differences:
            return f"llama.cpp renders, tokenises and answers as transformers does: {same}"
        return f"llama.cpp differs from transformers in {len(self.differences)} of {same}: " + "; ".join(
            difference_words(difference) for difference in self.differences[:3]
        )


def difference_words(difference: GgufDifference) -> str:
    """Such as `the answer to a question from token 5, "a" instead of "b", 0.02 nats less likely`."""
    place = {"template": "text of", "tokens": "tokens of", "answer": "answer to"}[difference.what]
    unit = "character" if difference.what == "template" else "token"
    words = (
        f"the {place} {difference.asked} from {unit} {difference.at + 1}, "
        f"{difference.llama_cpp!r} instead of {difference.transformers!r}"
    )
    return words if difference.margin is None else f"{words}, which is {difference.margin:.3f} nats less likely"
