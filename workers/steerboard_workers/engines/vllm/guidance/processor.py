"""vLLM's logits processor that guides: it mixes the logits of a pair, draws the next token, and rules out all others
for both requests. For the V1 model runner; the V2 one refuses to load it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from vllm.v1.sample.logits_processor import LogitsProcessor
from vllm.v1.sample.logits_processor.builtin import process_dict_updates

from steerboard_contracts.decoding import Decoding
from steerboard_workers.engines.sampling import guided, next_tokens
from steerboard_workers.engines.vllm.guidance.pairs import Member, check, member_of


@dataclass(frozen=True)
class _Row:
    """A request in the batch. `output`: vLLM's own list of its tokens, which grows."""

    member: Member
    output: list[int]


class Guide(LogitsProcessor):  # type: ignore[misc]
    """The rows of a pair are in one batch whenever a token of theirs is drawn: `PairScheduler` sees to it. A row alone
    is a part of a prompt, whose token vLLM drops."""

    @classmethod
    def validate_params(cls, params: Any) -> None:
        check(params)

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self._rows: dict[int, _Row] = {}

    def is_argmax_invariant(self) -> bool:
        return False

    def update_state(self, batch_update: Any) -> None:
        process_dict_updates(self._rows, batch_update, _row)

    def apply(self, logits: Tensor) -> Tensor:
        """`logits` (B, V) float32, changed in place. Raises `RuntimeError` for a pair that is out of step."""
        for decoding, pairs in self._pairs():
            with_condition = torch.tensor([place for place, _ in pairs], device=logits.device)
            without = torch.tensor([other for _, other in pairs], device=logits.device)
            rows = [self._rows[place] for place, _ in pairs]
            mixed = guided(logits[with_condition], logits[without], decoding.guidance)
            for place, row in enumerate(rows):
                mixed[place, [token for token in row.member.silent if token < mixed.shape[1]]] = -torch.inf
            keys = torch.tensor([row.member.key for row in rows], dtype=torch.int64, device=logits.device)
            drawn = torch.tensor([len(row.output) for row in rows], dtype=torch.int64, device=logits.device)
            tokens = next_tokens(mixed, decoding, keys, drawn)
            for places in (with_condition, without):
                logits[places] = -torch.inf
                logits[places, tokens] = 0.0
        return logits

    def _pairs(self) -> list[tuple[Decoding, list[tuple[int, int]]]]:
        """Rows with the condition and without it, by how they are decoded."""
        sides: dict[str, dict[bool, int]] = defaultdict(dict)
        for place, row in self._rows.items():
            sides[row.member.pair][row.member.conditional] = place
        alike: dict[tuple[float, ...], list[tuple[int, int]]] = defaultdict(list)
        for pair, places in sides.items():
            if len(places) < 2:
                continue
            one, other = self._rows[places[True]], self._rows[places[False]]
            if len(one.output) != len(other.output):
                raise RuntimeError(
                    f"guided request {pair} is out of step: {len(one.output)} and {len(other.output)} tokens"
                )
            alike[one.member.how].append((places[True], places[False]))
        return [(self._rows[pairs[0][0]].member.decoding, pairs) for pairs in alike.values()]


def _row(params: Any, prompt: list[int] | None, output: list[int]) -> _Row | None:
    member = member_of(params)
    return None if member is None else _Row(member, output)
