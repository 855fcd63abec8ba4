"""What objectives train on: rendered samples, each a prompt with one response or several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from steerboard_workers.alignment.rendering.render import RenderedGroup

Ids = NDArray[np.int32]
ChosenExperts = NDArray[np.uint8 | np.int16]


@dataclass(frozen=True, slots=True)
class Example:
    """One sample. Singles have one response, pairs have (chosen, rejected), rollouts n of one prompt; a prompt that is
    yet to be answered has none.

    `weight` multiplies a single's loss; `margin` is what a pair's difference must exceed. `frozen_log_probs`: by name
    of a frozen model, (responses,) float32 sums of log pi over the labels of each sequence; `label_counts` are their
    numbers. `token_values`: by name, of each response (labels,) float32 for the supervised tokens of its sequence, such
    as advantages.

    `leads`: how many tokens at the beginning of each response belong to the prompt, and are not learned; see
    `RenderedGroup`. Empty: none of any.

    `steps`: of each response, the places in it that are read by a model that reads ends, where it is not the last token
    alone: those of its steps. They are supervised in place of tokens.

    `routes`: of each response, the experts that computed it for its sampler, (tokens, layers, k) of every token of
    prompt and response but the last one, which nothing reads. Empty: none of any.

    `companion`: a sequence that an objective's `prepare` reads without gradient, such as this prompt with an answer to
    another one. It has the log-probs of frozen models as well.
    """

    row: int
    prompt: Ids
    responses: tuple[Ids, ...]
    prompt_supervised: NDArray[np.bool_] | None = None
    weight: float = 1.0
    margin: float = 0.0
    truncated: bool = False
    leads: tuple[int, ...] = ()
    frozen_log_probs: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    companion: Example | None = None
    steps: tuple[Ids, ...] = ()
    token_values: Mapping[str, tuple[NDArray[np.float32], ...]] = field(default_factory=dict)
    routes: tuple[ChosenExperts, ...] = ()

    @classmethod
    def of(cls, row: int, group: RenderedGroup, *, weight: float = 1.0, margin: float = 0.0) -> Example:
        learned = np.array(group.prompt_supervised) if any(group.prompt_supervised) else None
        if learned is not None:
            learned[0] = False  # nothing precedes the first token that could predict it
        return cls(
            row=row,
            prompt=np.array(group.prompt, dtype=np.int32),
            responses=tuple(np.array(response, dtype=np.int32) for response in group.responses),
            prompt_supervised=learned,
            weight=weight,
            margin=margin,
            truncated=group.truncated,
            leads=tuple(group.leads) if any(group.leads) else (),
        )

    @property
    def lengths(self) -> tuple[int, ...]:
        """Tokens of each full sequence, its prompt included; of the prompt where it is alone."""
        if not self.responses:
            return (len(self.prompt),)
        return tuple(len(self.prompt) + len(response) for response in self.responses)

    @property
    def tokens(self) -> int:
        """Real tokens of this sample, however they are computed."""
        return sum(self.lengths)

    @property
    def response_lengths(self) -> tuple[int, ...]:
        """Supervised tokens of each response."""
        leads = self.leads or (0,) * len(self.responses)
        return tuple(len(response) - lead for response, lead in zip(self.responses, leads, strict=True))

    @property
    def label_counts(self) -> tuple[int, ...]:
        """Supervised tokens, or steps, of each sequence."""
        if self.steps:
            return tuple(map(len, self.steps))
        inside = 0 if self.prompt_supervised is None else int(self.prompt_supervised.sum())
        return tuple(inside + length for length in self.response_lengths)

    @property
    def labels(self) -> int:
        """Supervised tokens."""
        return sum(self.label_counts)


def with_companions(examples: Iterable[Example]) -> Iterator[Example]:
    """Every sequence that will be read: each example, then its companion if it has one."""
    for example in examples:
        yield example
        if example.companion is not None:
            yield example.companion
