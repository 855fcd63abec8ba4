"""A global batch cut into micro-batches, and micro-batches as tensors.

The global batch is drawn at random before it comes here; sorting by length happens only inside it, since reward and
length go together and a step sorted over the whole data would see one reward only.

Layouts: `padded` has a sequence a row and needs no attention mask, because padding is on the right and attention
is causal. `packed` has one row for all, kept apart by position ids; `padding_free` has such a row too, which attention
alone lays out as padded, or by the lengths of its sequences (attention.py). With `share`, responses to one prompt, of
one sample or of several, follow each other in one row behind a single copy of it, hidden from each other by a mask or,
without padding, by attention.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from steerboard_contracts.specs.method import Reads
from steerboard_workers.alignment.batches.rows import Places, Row, multiplicity, position_ids, routes, segments, visible
from steerboard_workers.alignment.divergence import Comparison
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.segments import Segments

Layout = Literal["padded", "packed", "padding_free"]


# What a forward and backward pass costs besides its tokens, as a share of the budget that fills the machine.
PASS_COST = 0.05
# What a padded position costs where attention alone pads, against one that everything sees.
PADDING_COST = 0.15
# A row holds responses to one prompt while it is no longer than so many times its longest sequence: masked attention
# costs its square.
LONGEST_ROW = 2


@dataclass
class MicroBatch:
    """One forward pass. B rows of T tokens, N places to read, S sequences (a sample's are adjacent).

    input_ids (B, T); position_ids (B, T) or None for 0..T-1; attention_mask (B, 1, T, T) bool or None for causal;
    read (N,) flat places in B*T; labels (N,) the tokens predicted there (reads="labels"); sequence (N,) which of the
    S sequences a read belongs to; weights (S,); margins (S / 2,) for pairs; lengths (S,) real tokens; label_counts (S,)
    supervised ones, of which the last response_lengths (S,) are the response's. frozen_log_probs: by name of a frozen
    model, (S,) float32 sums over the labels of a sequence. token_values: by name, (N,) float32 of the labels.
    multiplicity (B*T,): how many sequences the token at a place is in, 0 of padding. routes (L, B*T, k): experts to
    send it to in each layer, -1 for those of the router's own choice; None for its choice everywhere.
    prepared: what the objective's `prepare` found of the global batch that this is a part of. comparison: the frozen
    model's distributions at the places to read, already on the device, that the forward pass compares its own with.
    """

    input_ids: Tensor
    read: Tensor
    labels: Tensor
    sequence: Tensor
    weights: Tensor
    margins: Tensor
    lengths: Tensor
    label_counts: Tensor
    response_lengths: Tensor
    multiplicity: Tensor
    position_ids: Tensor | None = None
    attention_mask: Tensor | None = None
    segments: Segments | None = None
    frozen_log_probs: Mapping[str, Tensor] = field(default_factory=dict)
    token_values: Mapping[str, Tensor] = field(default_factory=dict)
    prepared: Mapping[str, Tensor] = field(default_factory=dict)
    comparison: Comparison | None = None
    routes: Tensor | None = None

    def to(self, device: torch.device) -> MicroBatch:
        if device.type == "cpu":
            return self
        return MicroBatch(**{name: _moved(value, device) for name, value in vars(self).items()})

    def model_inputs(self) -> dict[str, Tensor | Segments | Comparison | None]:
        optional = {"comparison": self.comparison, "routes": self.routes}
        return {
            **{name: value for name, value in optional.items() if value is not None},
            "input_ids": self.input_ids,
            "read": self.read,
            "labels": self.labels,
            "position_ids": self.position_ids,
            "attention_mask": self.attention_mask,
            "segments": self.segments,
        }


@dataclass(frozen=True)
class Batcher:
    """Cuts and collates for one run. `micro_tokens`: positions of one forward pass, padding included. `padding_cost`:
    without padding, that of what attention pads all the same; 0 where it does not. `replays`: tokens go to the experts
    that their sampler chose, where that is known; answers share a prompt only where it went the same way for all."""

    layout: Layout
    reads: Reads
    micro_tokens: int
    pad_id: int
    micro_batch: int | None = None
    share: bool = False
    padding_cost: float = PADDING_COST
    replays: bool = False

    def cut(self, examples: Sequence[Example], ranks: int = 1) -> list[list[list[Example]]]:
        """The micro-batches of each rank, the same number on every rank: an empty list is a zero-weight one."""
        units = self._ordered(examples)
        micro = [
            [example for unit in units[start:end] for example in unit]
            for start, end in itertools.pairwise(self._cheapest(units))
        ]
        per_rank = -(-len(micro) // ranks)
        micro += [[] for _ in range(per_rank * ranks - len(micro))]
        return [micro[rank::ranks] for rank in range(ranks)]

    def positions(self, examples: Sequence[Example]) -> int:
        """Tokens of one forward pass over them, padding included."""
        sizes = [self._size(unit) for unit in self._units(examples)]
        if self.layout == "padded":
            return sum(size.rows for size in sizes) * max(size.width for size in sizes)
        return sum(size.tokens for size in sizes)

    def shares(self, examples: Sequence[Example]) -> bool:
        """Whether any prompt of them would be computed for several responses at once."""
        return self.share and any(len(unit) > 1 or len(unit[0].responses) > 1 for unit in self._ordered(examples))

    def _ordered(self, examples: Sequence[Example]) -> list[list[Example]]:
        """All units, the longest first; those of one prompt follow each other as `collate` will find them."""
        alone = sorted(examples, key=lambda e: (-max(e.lengths), e.row))
        by_prompt: dict[bytes | int, list[Example]] = {}
        for place, example in enumerate(alone):
            by_prompt.setdefault(self._prompt_of(example) if self.share else place, []).append(example)
        of_prompts = [self._units(of_prompt) for of_prompt in by_prompt.values()]
        of_prompts.sort(key=lambda units: (-max(self._size(unit).width for unit in units), units[0][0].row))
        return [unit for units in of_prompts for unit in units]

    def _prompt_of(self, example: Example) -> bytes:
        """What examples have in common that share a prompt."""
        routed = example.routes if self.replays else ()
        return b"".join([example.prompt.tobytes(), *(chosen[: len(example.prompt)].tobytes() for chosen in routed)])

    def _units(self, examples: Sequence[Example]) -> list[list[Example]]:
        """What is computed behind one copy of a prompt: an example, or several adjacent ones."""
        units: list[list[Example]] = []
        for example in examples:
            if units and self._joins(units[-1], example):
                units[-1].append(example)
            else:
                units.append([example])
        return units

    def _joins(self, unit: Sequence[Example], example: Example) -> bool:
        if not self.share or self._prompt_of(unit[0]) != self._prompt_of(example):
            return False
        joined = [*unit, example]
        size = self._size(joined)
        longest = max(length for row in joined for length in row.lengths)
        few = self.micro_batch is None or len(joined) <= self.micro_batch
        # Without padding there is no mask.
        short = self.layout == "padding_free" or size.tokens <= LONGEST_ROW * longest
        return few and short and self._cost(size) <= self.micro_tokens

    def _size(self, unit: Sequence[Example]) -> _Size:
        lengths = [length for example in unit for length in example.lengths]
        if not self.share:
            return _Size(len(lengths), max(lengths), sum(lengths))
        shared = sum(lengths) - (len(lengths) - 1) * len(unit[0].prompt)
        if self.layout == "padding_free":
            return _Size(len(lengths), max(lengths), shared)
        return _Size(1, shared, shared)

    def _cost(self, size: _Size) -> float:
        grid = size.rows * size.width
        if self.layout == "padded":
            return grid
        return size.tokens if self.layout == "packed" else size.tokens + self.padding_cost * (grid - size.tokens)

    def _cheapest(self, units: Sequence[Sequence[Example]]) -> list[int]:
        """The places to cut a sorted batch: the fewest positions, where every pass has a cost besides its tokens.

        Filling each pass to the budget would pad a fifth of the positions of real dialogues; shorter passes of nearly
        equal lengths are up to 15% faster in all.
        """
        overhead = self.micro_tokens * PASS_COST
        best = [0.0] + [math.inf] * len(units)
        cut_before = [0] * (len(units) + 1)
        sizes, counts = [self._size(unit) for unit in units], [len(unit) for unit in units]
        for end in range(1, len(units) + 1):
            size, count = _Size(0, 0, 0), 0
            for start in range(end - 1, -1, -1):
                size, count = size.joined(sizes[start]), count + counts[start]
                cost = self._cost(size)
                fits = cost <= self.micro_tokens and (self.micro_batch is None or count <= self.micro_batch)
                if not fits and start < end - 1:
                    break
                if best[start] + cost + overhead < best[end]:
                    best[end] = best[start] + cost + overhead
                    cut_before[end] = start
        cuts = [len(units)]
        while cuts[-1]:
            cuts.append(cut_before[cuts[-1]])
        return cuts[::-1]

    def collate(self, examples: Sequence[Example]) -> MicroBatch:
        rows = [row for unit in self._units(examples) for row in self._lay_out(unit)]
        lengths = np.array([len(row.ids) for row in rows])
        if self.layout != "padded":
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
            label_counts=torch.tensor([n for e in examples for n in e.label_counts], dtype=torch.float32),
            response_lengths=torch.tensor([n for e in examples for n in e.response_lengths], dtype=torch.float32),
            multiplicity=multiplicity(rows, starts, shape[0] * shape[1]),
            frozen_log_probs=_frozen_log_probs(examples),
            token_values=_token_values(examples),
            routes=routes(rows, starts, shape[0] * shape[1]) if self.replays else None,
        )
        shared = any(len(row.branches) > 1 for row in rows)
        if self.layout != "padded" or shared:
            batch.position_ids = position_ids(rows, starts, shape)
        if self.layout == "padding_free":
            batch.segments = segments(rows, starts)
        elif shared:
            batch.attention_mask = visible(rows, starts, shape)
        return batch

    def _lay_out(self, unit: Sequence[Example]) -> list[Row]:
        responses = [(example, number) for example in unit for number in range(len(example.responses))]
        return [Row.of(responses)] if self.share else [Row.of([response]) for response in responses]

    def _reads(self, rows: list[Row], starts: Places) -> tuple[Places, Places, Places]:
        read: list[Places] = []
        labels: list[Places] = []
        sequence: list[Places] = []
        for row, start in zip(rows, starts, strict=True):
            prompt = np.arange(row.prompt)
            for branch in row.branches:
                where = np.concatenate([prompt, branch.offset + np.arange(branch.length)])
                if self.reads == "ends":
                    steps = branch.example.steps
                    read.append(start + (branch.offset + steps[branch.response] if steps else where[-1:]))
                else:
                    learned = np.ones(len(where), dtype=bool)
                    inside = branch.example.prompt_supervised
                    learned[: row.prompt] = False if inside is None else inside
                    leads = branch.example.leads
                    learned[row.prompt : row.prompt + (leads[branch.response] if leads else 0)] = False
                    at = np.flatnonzero(learned)
                    read.append(start + where[at - 1])
                    labels.append(row.ids[where[at]].astype(np.int64))
                sequence.append(np.full(len(read[-1]), len(sequence)))
        return (
            np.concatenate(read),
            np.concatenate(labels) if labels else np.zeros(0, dtype=np.int64),
            np.concatenate(sequence),
        )


class _Size(NamedTuple):
    """The size of one unit or of several: `rows` of up to `width` positions, for attention alone where there is no
    padding; `tokens` are those that everything else sees."""

    rows: int
    width: int
    tokens: int

    def joined(self, other: _Size) -> _Size:
        return _Size(self.rows + other.rows, max(self.width, other.width), self.tokens + other.tokens)


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, Mapping):
        return {name: tensor.to(device) for name, tensor in value.items()}
    if isinstance(value, Comparison):
        return value
    return None if value is None else value.to(device)


def _frozen_log_probs(examples: Sequence[Example]) -> dict[str, Tensor]:
    """(S,) of each frozen model that all examples have log-probs of."""
    names = set.intersection(*(set(e.frozen_log_probs) for e in examples))
    return {
        name: torch.from_numpy(np.concatenate([e.frozen_log_probs[name] for e in examples])) for name in sorted(names)
    }


def _token_values(examples: Sequence[Example]) -> dict[str, Tensor]:
    """(N,) of each name that all examples have values of."""
    names = set.intersection(*(set(e.token_values) for e in examples))
    return {
        name: torch.from_numpy(np.concatenate([values for e in examples for values in e.token_values[name]]))
        for name in sorted(names)
    }
