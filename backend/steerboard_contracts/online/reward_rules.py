"""Rewards that a rule gives an answer, as the config of a run has them. The worker's half is `alignment.online`."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from steerboard_contracts.fields import Config, Count, Positive
from steerboard_contracts.online.judge_reward import JudgeReward
from steerboard_contracts.samples import Finite

# Characters of a pattern. What a pattern may cost on an answer is limited by time, where it runs.
LONGEST_PATTERN = 500


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is not a valid regular expression: {error}") from error
    return pattern


Pattern = Annotated[str, Field(min_length=1, max_length=LONGEST_PATTERN), AfterValidator(_compiles)]
AllowedFile = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1000,
        description="Path on every worker, below a folder that the operator allows (STEERBOARD_REWARD_ROOTS).",
    ),
]
FileHash = Annotated[
    str,
    Field(
        pattern="^[0-9a-f]{64}$",
        description="Hash of the file, as `sha256sum` prints it: another file by that name is refused.",
    ),
]
Weight = Annotated[Finite, Field(description="Factor of the rule's reward; negative to punish.")]


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
    ignore_case: Annotated[bool, Field(description="Ignore upper and lower case.")] = False


class RegexMatch(Config):
    """1 for an answer in which the pattern is found, 0 for others."""

    kind: Literal["regex"]
    weight: Weight = 1.0
    pattern: Annotated[Pattern, Field(description=r"A regular expression; `\A...\Z` for the whole answer.")]


class OutsideReward(Config):
    """What code that is not the platform's gives an answer, from its prompt, its text and the reference answer."""

    weight: Weight = 1.0
    seconds: Annotated[
        Positive,
        Field(le=600, description="Seconds per call; answers without a reward by then are left out and counted."),
    ] = 30.0


class PythonReward(OutsideReward):
    """What `reward(prompts, answers, references)` of a Python file returns: a number for each answer, or None."""

    kind: Literal["python"]
    file: AllowedFile
    sha256: FileHash


class HttpReward(OutsideReward):
    """What a server answers to POST {"prompts", "answers", "references"}: {"rewards": [number or null]}."""

    kind: Literal["http"]
    url: Annotated[str, Field(max_length=2000, pattern=r"^https?://[^\s@#]+$", description="Without credentials.")]
    batch: Annotated[Count, Field(le=1024, description="Answers in one request.")] = 64
    retries: Annotated[
        int, Field(ge=0, le=10, description="Retries of a request that fails on the way or by the server.")
    ] = 3


RewardRule = Annotated[ExactMatch | RegexMatch | PythonReward | HttpReward | JudgeReward, Field(discriminator="kind")]
