"""A global batch cut into micro-batches, and micro-batches as tensors.

The global batch is drawn at random before it comes here; sorting by length happens only inside it, since reward and
length go together and a step sorted over the whole data would see one reward only.

Layouts: `padded` has a sequence a row and needs no attention mask, because padding stands on the right and attention
is causal. `packed` has one row for all, kept apart by position ids. With `share`, the responses of one sample follow
each other in one row behind a single copy of their prompt, under a mask that hides them from each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steerboard_workers.alignment.examples import Example

Layout = Literal["padded", "packed"]
# What the loss reads: the tokens that predict a label, or the last real token of each sequence.
Reads = Literal["labels", "ends"]


@dataclass
class MicroBatch:
    """One forward pass. B rows of T tokens, N places to read, S sequences (a sample's stand side by side).

    input_ids (B, T); position_ids (B, T) or None for 0..T-1; attention_mask (B, 1, T, T) bool or None for causal;
    read (N,) flat places in B*T; labels (N,) the tokens predicted there (reads="labels"); sequence (N,) which of the
    S sequences a read belongs to; weights (S,); margins (S / 2,) for pairs; lengths (S,) real tokens.
    """

    input_ids: Tensor
    read: Tensor
    labels: Tensor
    sequence: Tensor
    weights: Tensor
    margins: Tensor
    lengths: Tensor
    position_ids: Tensor | None = None
    attention_mask: Tensor | None = None

    def to(self, device: torch.device) -> MicroBatch:
        if device.type == "cpu":
            return self
        moved = {
            name: value.to(device, non_blocking=True) if isinstance(value, Tensor) else value
            for name, value in vars(self).items()
        }
        return MicroBatch(**moved)

    def model_inputs(self) -> dict[str, Tensor | None]:
        return {
            "input_ids": self.input_ids,
            "read": self.read,
            "labels": self.labels,
            "position_ids": self.position_ids,
            "attention_mask": self.attention_mask,
        }


@dataclass(frozen=True)
class Batcher:
    """Cuts and collates for one run. `micro_tokens`: positions of one forward pass, padding included."""

    layout: Layout
    reads: Reads
    micro_tokens: int
    pad_id: int
    micro_batch: int | None = None
    share: bool = False

    def cut(self, examples: Sequence[Example], ranks: int = 1) -> list[list[list[Example]]]:
        """For each rank its micro-batches, the same number on every rank: an empty list is a zero-weight one."""
        ordered = sorted(examples, key=lambda e: (-max(self._rows(e)), e.row))
        micro: list[list[Example]] = []
        width = used = 0
        for example in ordered:
            rows = self._rows(example)
            packed = self.layout == "packed"
            cost = used + sum(rows) if packed else (used + len(rows)) * max(width, *rows)
            full = self.micro_batch is not None and bool(micro) and len(micro[-1]) >= self.micro_batch
            if not micro or full or cost > self.micro_tokens:
                micro.append([])
                width = used = 0
            micro[-1].append(example)
            width = max(width, *rows)
            used += sum(rows) if packed else len(rows)
        per_rank = -(-len(micro) // ranks)
        micro += [[] for _ in range(per_rank * ranks - len(micro))]
        return [micro[rank::ranks] for rank in range(ranks)]

    def _rows(self, example: Example) -> tuple[int, ...]:
        """Lengths of the rows that a sample takes."""
        if self.share:
            return (len(example.prompt) + sum(len(r) for r in example.responses),)
        return example.lengths

    def collate(self, examples: Sequence[Example]) -> MicroBatch:
        rows = [row for number, example in enumerate(examples) for row in self._lay_out(number, example)]
        lengths = np.array([len(row.ids) for row in rows])
        if self.layout == "packed":
            shape = (1, int(lengths.sum()))
            starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        else:
            shape = (len(rows), int(lengths.max()))
            starts = np.arange(len(rows)) * shape[1]
        flat = np.full(shape[0] * shape[1], self.pad_id, dtype=np.int64)
        for row, start in zip(rows, starts, strict=True):
            flat[start : start + len(row.ids)] = row.ids
        read, labels, sequence = self._reads(rows, starts)
        batch = MicroBatch(
            input_ids=torch.from_numpy(flat.reshape(shape)),
            read=torch.from_numpy(read),
            labels=torch.from_numpy(labels),
            sequence=torch.from_numpy(sequence),
            weights=torch.tensor([e.weight for e in examples for _ in e.responses], dtype=torch.float32),
            margins=torch.tensor([e.margin for e in examples], dtype=torch.float32),
            lengths=torch.tensor([n for e in examples for n in e.lengths], dtype=torch.float32),
        )
        if self.layout == "packed" or self.share:
            batch.position_ids, batch.attention_mask = self._isolate(rows, starts, shape)
        return batch

    def _lay_out(self, number: int, example: Example) -> Iterable[_Row]:
        ids, at = [example.prompt], len(example.prompt)
        starts = []
        for response in example.responses:
            starts.append(at)
            ids.append(response)
            at += len(response)
        if self.share:
            yield _Row(np.concatenate(ids), number, example, tuple(enumerate(starts)))
            return
        for branch, response in enumerate(example.responses):
            yield _Row(np.concatenate([example.prompt, response]), number, example, ((branch, len(example.prompt)),))

    def _reads(
        self, rows: list[_Row], starts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        read: list[NDArray[np.int64]] = []
        labels: list[NDArray[np.int64]] = []
        sequence: list[NDArray[np.int64]] = []
        number = 0
        for row, start in zip(rows, starts, strict=True):
            prompt = np.arange(len(row.example.prompt))
            for branch, offset in row.branches:
                response = offset + np.arange(len(row.example.responses[branch]))
                where = np.concatenate([prompt, response])
                if self.reads == "ends":
                    read.append(start + where[-1:])
                else:
                    learned = np.ones(len(where), dtype=bool)
                    inside = row.example.prompt_supervised
                    learned[: len(prompt)] = False if inside is None else inside
                    at = np.flatnonzero(learned)
                    read.append(start + where[at - 1])
                    labels.append(row.ids[where[at]].astype(np.int64))
                sequence.append(np.full(len(read[-1]), number))
                number += 1
        return (
            np.concatenate(read),
            np.concatenate(labels) if labels else np.zeros(0, dtype=np.int64),
            np.concatenate(sequence),
        )

    def _isolate(
        self, rows: list[_Row], starts: NDArray[np.int64], shape: tuple[int, int]
    ) -> tuple[Tensor, Tensor | None]:
        """Position ids that restart with every sequence and, for shared prompts, the mask between responses."""
        size = shape[0] * shape[1]
        positions = np.tile(np.arange(shape[1]), shape[0])
        owner = np.full(size, -1, dtype=np.int64)
        branch_of = np.zeros(size, dtype=np.int64)
        for row, start in zip(rows, starts, strict=True):
            end = start + len(row.ids)
            positions[start:end] = np.arange(len(row.ids))
            owner[start:end] = row.number
            for branch, offset in row.branches[1:]:
                response = start + offset
                length = len(row.example.responses[branch])
                positions[response : response + length] = len(row.example.prompt) + np.arange(length)
            if self.share:
                for branch, offset in row.branches:
                    begin = start + offset
                    branch_of[begin : begin + len(row.example.responses[branch])] = branch + 1
        position_ids = torch.from_numpy(positions.reshape(shape))
        if not self.share:
            return position_ids, None
        owners = torch.from_numpy(owner.reshape(shape))
        branches = torch.from_numpy(branch_of.reshape(shape))
        visible = (branches[:, None, :] == 0) | (branches[:, None, :] == branches[:, :, None])
        visible &= owners[:, None, :] == owners[:, :, None]
        visible &= torch.ones(shape[1], shape[1], dtype=torch.bool).tril()
        return position_ids, visible[:, None]


@dataclass(frozen=True)
class _Row:
    """A stretch of tokens: a prompt and one response, or several behind it. `branches`: (response, its offset)."""

    ids: NDArray[np.int32]
    number: int
    example: Example
    branches: tuple[tuple[int, int], ...]
