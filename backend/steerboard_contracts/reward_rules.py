"""Rewards that a rule gives an answer, as the config of a run has them. The worker's half is `alignment.online`."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from steerboard_contracts.fields import Config
from steerboard_contracts.samples import Finite

# Characters of a pattern. What a pattern may cost on an answer is limited by time, where it runs.
LONGEST_PATTERN = 500


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is no regular expression: {error}") from error
    return pattern


Pattern = Annotated[str, Field(min_length=1, max_length=LONGEST_PATTERN), AfterValidator(_compiles)]
Weight = Annotated[Finite, Field(description="What the rule's reward is multiplied with; below 0 to punish.")]


class ExactMatch(Config):
    """1 for an answer that is the reference answer of its prompt, 0 for others; spaces at both ends do not count.

    The reference answer is the field `reference` of a prompt, or the response of an instruction. A row without one
    cannot be scored.
    """

    kind: Literal["exact_match"]
    weight: Weight = 1.0
    extract: Annotated[
        Pattern | None,
        Field(
            description="Compare what this regular expression finds last in the answer, or its first group, instead of "
            r"the whole answer: `answer is (\d+)`. An answer without it gets 0."
        ),
    ] = None
    ignore_case: Annotated[bool, Field(description="Take upper and lower case for the same.")] = False


class RegexMatch(Config):
    """1 for an answer in which the pattern is found, 0 for others."""

    kind: Literal["regex"]
    weight: Weight = 1.0
    pattern: Annotated[Pattern, Field(description=r"A regular expression; `\A...\Z` for the whole answer.")]


RewardRule = Annotated[ExactMatch | RegexMatch, Field(discriminator="kind")]
