"""How fluent each entrant's answers are, next to what they gain."""

from __future__ import annotations

from pydantic import BaseModel, Field

from steerboard_contracts.report.estimate import Estimate


class FluencyRow(BaseModel):
    """`perplexity`: exp of the mean negative log-prob of a token of its answers under the model, the end tokens among
    them, whatever they were drawn with; `why`: where there is none, the reason.

    Shares of `answers`: `empty`, with a turn of nothing but blanks; `repeated`, equal to an answer of the same entrant
    to another prompt, or with a run of four words three times in one turn; `cut`, ended by the token limit, null where
    that is not known. `distinct_1` and `distinct_2`: distinct words, and pairs of words, over all of them in the first
    answers to the prompts. `tokens`: mean of an answer, null for those from elsewhere that came without.
    """

    entrant: str
    answers: int
    perplexity: Estimate
    why: str | None = None
    distinct_1: float | None
    distinct_2: float | None
    empty: float | None
    repeated: float | None
    cut: float | None
    tokens: float | None


class Fluency(BaseModel):
    """`perplexity_by`: the model of `kl_to`, null where the evaluation names none, and no one has a perplexity."""

    perplexity_by: str | None = Field(None, description="The evaluation's `kl_to`.")
    entrants: list[FluencyRow]


def fluency_cells(row: FluencyRow) -> tuple[str, ...]:
    """What tables show of an entrant behind its perplexity."""

    def shown(value: float | None, form: str) -> str:
        return "–" if value is None else format(value, form)

    shares = (shown(share, ".1%") for share in (row.empty, row.repeated, row.cut))
    return shown(row.distinct_1, ".2f"), shown(row.distinct_2, ".2f"), *shares, shown(row.tokens, ",.1f")
