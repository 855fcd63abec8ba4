"""Rows of a micro-batch before they are tensors: a prompt, then one response or several that do not see each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steerboard_workers.alignment.attention import Segments
from steerboard_workers.alignment.examples import Example

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
    """For attention alone each response gets a row of its own, behind a copy of its prompt: a causal mask is enough,
    which skips half of the scores."""
    width = max(row.width for row in rows)
    places: list[Places] = []
    rounds: dict[int, list[tuple[Places, Places]]] = {}
    at = 0
    for row, start in zip(rows, starts, strict=True):
        prompt = np.arange(row.prompt)
        places.append(at * width + prompt)
        for number, branch in enumerate(row.branches):
            places.append((at + number) * width + row.prompt + np.arange(branch.length))
            if number:
                rounds.setdefault(number, []).append((start + prompt, (at + number) * width + prompt))
        at += len(row.branches)
    copies = [tuple(torch.from_numpy(np.concatenate(side)) for side in zip(*of, strict=True)) for of in rounds.values()]
    return Segments(torch.from_numpy(np.concatenate(places)), at, width, [(tokens, to) for tokens, to in copies])
