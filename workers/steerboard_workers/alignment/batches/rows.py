"""Rows of a micro-batch before they are tensors: a prompt, then one response or several that do not see each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.segments import Further, Grid, Segments

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Branch:
    """Response number `response` of an example, at `offset` of its row."""

    example: Example
    response: int
    offset: int

    @property
    def length(self) -> int:
        return len(self.example.responses[self.response])


@dataclass(frozen=True)
class Row:
    """`ids` are a prompt of `prompt` tokens and the responses behind it."""

    ids: NDArray[np.int32]
    prompt: int
    branches: tuple[Branch, ...]

    @classmethod
    def of(cls, responses: Sequence[tuple[Example, int]]) -> Row:
        """Behind one copy of the prompt, which is the same for all of them."""
        prompt = responses[0][0].prompt
        ids, branches, at = [prompt], [], len(prompt)
        for example, number in responses:
            branches.append(Branch(example, number, at))
            ids.append(example.responses[number])
            at += branches[-1].length
        return cls(np.concatenate(ids), len(prompt), tuple(branches))

    @property
    def width(self) -> int:
        """Tokens of its longest sequence."""
        return self.prompt + max(branch.length for branch in self.branches)


def position_ids(rows: Sequence[Row], starts: Places, shape: tuple[int, int]) -> Tensor:
    """(B, T) that restart with every sequence; each response of a shared prompt continues from its end."""
    positions = np.tile(np.arange(shape[1]), shape[0])
    for row, start in zip(rows, starts, strict=True):
        positions[start : start + row.prompt] = np.arange(row.prompt)
        for branch in row.branches:
            begin = start + branch.offset
            positions[begin : begin + branch.length] = row.prompt + np.arange(branch.length)
    return torch.from_numpy(positions.reshape(shape))


def multiplicity(rows: Sequence[Row], starts: Places, positions: int) -> Tensor:
    """(positions,) float32: how many sequences a token is in, which for that of a shared prompt is all behind it; 0 of
    padding."""
    counts = np.zeros(positions, dtype=np.float32)
    for row, start in zip(rows, starts, strict=True):
        counts[start : start + row.prompt] = len(row.branches)
        counts[start + row.prompt : start + len(row.ids)] = 1
    return torch.from_numpy(counts)


def routes(rows: Sequence[Row], starts: Places, positions: int) -> Tensor | None:
    """(layers, positions, k) int64 experts that samplers chose, -1 for tokens of which that is not known, such as
    padding and the last one of each sequence; None where none is known. A shared prompt has one copy of them."""
    known = [branch.example.routes[branch.response] for row in rows for branch in row.branches if branch.example.routes]
    if not known:
        return None
    chosen = np.full((positions, *known[0].shape[1:]), -1, dtype=np.int64)
    for row, start in zip(rows, starts, strict=True):
        for branch in row.branches:
            if branch.example.routes:
                own = branch.example.routes[branch.response]
                chosen[start : start + row.prompt] = own[: row.prompt]
                begin = start + branch.offset
                chosen[begin : begin + branch.length - 1] = own[row.prompt :]
    return torch.from_numpy(np.ascontiguousarray(chosen.swapaxes(0, 1)))


def visible(rows: Sequence[Row], starts: Places, shape: tuple[int, int]) -> Tensor:
    """(B, 1, T, T) bool: a token sees what precedes it in its row's prompt and in its own response."""
    owner = np.full(shape[0] * shape[1], -1, dtype=np.int64)
    branch_of = np.zeros(shape[0] * shape[1], dtype=np.int64)
    for number, (row, start) in enumerate(zip(rows, starts, strict=True)):
        owner[start : start + len(row.ids)] = number
        for place, branch in enumerate(row.branches):
            begin = start + branch.offset
            branch_of[begin : begin + branch.length] = place + 1
    owners = torch.from_numpy(owner.reshape(shape))
    branches = torch.from_numpy(branch_of.reshape(shape))
    seen = (branches[:, None, :] == 0) | (branches[:, None, :] == branches[:, :, None])
    seen &= owners[:, None, :] == owners[:, :, None]
    seen &= torch.ones(shape[1], shape[1], dtype=torch.bool).tril()
    return seen[:, None]


def segments(rows: Sequence[Row], starts: Places) -> Segments:
    """The segments that attention sees: each row's first response is a causal row behind its prompt. Others are rows of
    their own, too, behind a copy of the prompt: a causal mask skips half of the scores. Where they are short, they
    alone ask, and see a copy of the prompt: then that is less."""
    width = max(row.width for row in rows)
    others = [branch.length for row in rows for branch in row.branches[1:]]
    if others:
        asked, prompt = max(others), max(row.prompt for row in rows if len(row.branches) > 1)
        if asked * (prompt + asked) < width * width / 2:
            return Segments(*_apart(rows, starts, asked, prompt))
    places, rounds, at = [], _Rounds(), 0
    for row, start in zip(rows, starts, strict=True):
        places.append(at * width + np.arange(row.prompt))
        for number, branch in enumerate(row.branches):
            places.append((at + number) * width + row.prompt + np.arange(branch.length))
            if number:
                rounds.add(number, start, row.prompt, (at + number) * width)
        at += len(row.branches)
    return Segments(Grid(torch.from_numpy(np.concatenate(places)), at, width, None, rounds.copies()))


def _apart(rows: Sequence[Row], starts: Places, asked: int, prompt: int) -> tuple[Grid, Further]:
    """`asked`: the longest of the further responses; `prompt`: of the prompts before them."""
    width = max(row.prompt + row.branches[0].length for row in rows)
    first, asking, rounds, at = _Some(), _Some(), _Rounds(), 0
    seen, lengths = [], []
    for place, (row, start) in enumerate(zip(rows, starts, strict=True)):
        # The prompt and the first response follow each other.
        first.add(start, row.branches[0].offset + row.branches[0].length, place * width)
        for number, branch in enumerate(row.branches[1:]):
            asking.add(start + branch.offset, branch.length, at * asked)
            seen.append(at * (prompt + asked) + prompt + np.arange(branch.length))
            rounds.add(number, start, row.prompt, at * (prompt + asked))
            lengths.append(row.prompt)
            at += 1
    own = Grid(torch.from_numpy(np.concatenate(seen)), at, prompt + asked, asking.tokens(), rounds.copies())
    further = Further(asking.grid(at, asked), own, torch.tensor(lengths))
    return first.grid(len(rows), width), further


class _Some:
    """Tokens of a row, and where they go."""

    def __init__(self) -> None:
        self._tokens: list[Places] = []
        self._places: list[Places] = []

    def add(self, start: int, length: int, place: int) -> None:
        """Adds `length` tokens from `start` on, side by side from `place` on."""
        self._tokens.append(start + np.arange(length))
        self._places.append(place + np.arange(length))

    def tokens(self) -> Tensor:
        return torch.from_numpy(np.concatenate(self._tokens))

    def grid(self, rows: int, width: int) -> Grid:
        return Grid(torch.from_numpy(np.concatenate(self._places)), rows, width, self.tokens())


class _Rounds:
    """Copies of prompts, no token twice in one round."""

    def __init__(self) -> None:
        self._of: dict[int, _Some] = {}

    def add(self, number: int, start: int, length: int, place: int) -> None:
        self._of.setdefault(number, _Some()).add(start, length, place)

    def copies(self) -> list[tuple[Tensor, Tensor]]:
        return [(some.tokens(), some.grid(0, 0).places) for some in self._of.values()]
