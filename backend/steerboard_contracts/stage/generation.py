"""Which prompts of a dataset a generate run answers, and the samples it produces, for any engine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from steerboard_contracts.errors import EmptySelection
from steerboard_contracts.run_kinds.generate import GenerateConfig, Portion
from steerboard_contracts.stage.spec import Shard

Rows = Callable[[], Iterator[dict[str, Any]]]
Messages = list[dict[str, Any]]


def selected(rows: Rows, config: GenerateConfig, shard: Shard, name: str) -> list[tuple[int, Messages]]:
    """(row, prompt) of this shard of dataset `name`, whose rows are read twice. The limit is drawn before sharding,
    so shards agree on it.

    Raises `EmptySelection` when the split has no prompts at all; a single shard may well have none.
    """
    chosen = [
        (place, int(row.get("row", place)))
        for place, row in enumerate(rows())
        if config.split in ("all", row.get("split", "train")) and _in_portion(row["prompt"], config.portion)
    ]
    if not chosen:
        raise EmptySelection(
            f"dataset {name} has no rows in the split {config.split}"
            + (f" and part {config.portion.number} of {config.portion.of}" if config.portion else ""),
            hint="Use split: all, or a dataset with more prompts.",
        )
    if config.limit is not None and config.limit < len(chosen):
        drawn = sorted(chosen, key=lambda item: _draw_key(config.seed, item[1]))[: config.limit]
        chosen = sorted(drawn)
    wanted = {place: row for place, row in chosen if place % shard.count == shard.index}
    return [(wanted[place], row["prompt"]) for place, row in enumerate(rows()) if place in wanted]


def sample_of(prompt: Messages, text: str, row: int, n: int) -> dict[str, Any] | None:
    """An instruction sample: answer `n` to the prompt of `row`. None for an empty answer: a model may end
    immediately."""
    if not text.strip():
        return None
    response = text.replace("\x00", "")
    return {"prompt": prompt, "response": response, "source": "generated", "group": row, "candidate": n, "row": row}


def check_written(written: int, answers: int) -> None:
    """Raises `EmptySelection` when all of the answers were empty."""
    if written == 0 and answers:
        raise EmptySelection(f"all {answers} answers were empty", hint="Train the model for longer.")


def _in_portion(prompt: Messages, portion: Portion | None) -> bool:
    """Independent of the split, and of the place in the dataset."""
    if portion is None:
        return True
    text = json.dumps([[message["role"], message["content"]] for message in prompt])
    digest = hashlib.sha256(b"portion\0" + text.encode()).digest()
    return int.from_bytes(digest[:8], "big") % portion.of == portion.number - 1


def _draw_key(seed: int, row: int) -> bytes:
    return hashlib.sha256(f"{seed}:{row}".encode()).digest()
