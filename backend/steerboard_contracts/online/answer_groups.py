"""What a run that samples its own answers keeps of some of them: the answers to a prompt at a step, to be compared."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from steerboard_contracts.samples import Finite

# The most answers of a group, tokens and characters of an answer, and last characters of a prompt.
MOST_ANSWERS = 64
MOST_TOKENS = 256
MOST_CHARACTERS = 4000

InspectGroups = Annotated[
    int,
    Field(
        ge=0,
        le=16,
        description="Prompts per sampling step whose answers are kept for inspection, with their rewards, advantages "
        "and KL: about 6 kB for an answer of 256 tokens, in the database and in each checkpoint; 0: none.",
    ),
]
InspectGroupSteps = Annotated[
    int,
    Field(ge=1, le=200, description="Steps at which answers are kept, evenly over the run, the first one included."),
]


class GroupMessage(BaseModel):
    role: str
    content: str


class GroupTurn(BaseModel):
    """A turn of a rollout with an environment: the answer of `tokens`, the observation of the environment, and the
    reward that it gave for it, None without one."""

    text: str
    tokens: int
    reward: Finite | None
    observation: list[GroupMessage] = []


class GroupAnswer(BaseModel):
    """`reward`: what was learned from, None for an answer that was left out; `sources`: each reward as it was given,
    by name, None where it could not be scored. `advantage`: the mean over the tokens. `kl`: the sum of its log-ratios
    to the reference, in nats; None without a reference.

    `tokens` are all that were sampled; `texts` those of the first ones, empty for a token that completes a character
    with the next one, with the `log_ratios` (empty without a reference) and `advantages` of each.

    `turns` of a rollout with an environment, whose `text` is its last answer; `ended_by_environment`, or by a limit.
    """

    n: int
    text: str
    tokens: int
    finished: bool
    reward: Finite | None
    sources: dict[str, Finite | None]
    advantage: Finite | None
    kl: Finite | None
    texts: list[str] = []
    log_ratios: list[Finite] = []
    advantages: list[Finite] = []
    turns: list[GroupTurn] = []
    ended_by_environment: bool = False


class AnswerGroup(BaseModel):
    """`place`: among the groups of the step that were kept. `row` of the dataset. `prompt`: its end, as the model reads
    it. `answers` by reward, best first; `sampled`: how many there were. `tied`: the rewards are the same, and teach
    nothing."""

    place: int
    row: int
    prompt: str
    sampled: int
    tied: bool
    answers: list[GroupAnswer]
