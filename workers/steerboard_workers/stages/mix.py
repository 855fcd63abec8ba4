"""The mix stage: the paper's mixture of generated answers, instructions and both sides of preferences, or a mixture of
pairs as they are.

Each part gives its share of `size`, drawn without replacement; `auto` parts divide what is left by their row counts.
Held-out prompts stay held out, because the split goes by the prompt's hash and not by the row. Rows are drawn, not
groups; the groups of different parts stay apart under new numbers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.run_kinds.mix import MixConfig, MixPart
from steerboard_contracts.samples import GROUP_FIELDS
from steerboard_contracts.stage.events import Succeeded
from steerboard_contracts.stage.outputs import DatasetOutput
from steerboard_contracts.wording import listed
from steerboard_workers.stages.runtime import Stage


def run(stage: Stage) -> Succeeded:
    config = stage.spec.config
    assert isinstance(config, MixConfig)
    names = stage.input_names("parts")
    if len(names) != len(config.parts):
        raise BadInput(f"{len(config.parts)} parts are configured, but {len(names)} inputs given", code="missing_input")
    available = [stage.dataset(n).rows * _sides(stage, n, p, config) for n, p in zip(names, config.parts, strict=True)]
    wanted = quotas(config, available)
    sources: Counter[str] = Counter()
    groups: dict[tuple[int, int], int] = {}
    total = 0
    with (
        stage.phases.measure("data"),
        stage.output_file("mixture.jsonl") as path,
        path.open("w", encoding="utf-8") as file,
    ):
        for index, (name, part) in enumerate(zip(names, config.parts, strict=True)):
            candidates = _pairs(stage, name) if config.makes == "preferences" else _candidates(stage, name, part)
            for row in _drawn(candidates, [config.seed, index], wanted[index], available[index]):
                if "group" in row:
                    row["group"] = groups.setdefault((index, row["group"]), len(groups))
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                sources[row["source"]] += 1
                total += 1
                stage.progress(total, max(total, sum(wanted)), "rows", "mixing")
        if total == 0:
            raise EmptySelection("the mixture is empty: none of its parts has rows")
    short = config.size - total
    if short > 0:
        parts = ", ".join(
            f"{n} ({stage.dataset(n).name}) gave {min(w, a)} of {w}"
            for n, w, a in zip(names, wanted, available, strict=True)
        )
        stage.log(f"the mixture has {total} of the {config.size} rows asked for: {parts}", "warning")
    output = DatasetOutput(path=stage.output_path("mixture.jsonl"), kind=config.makes, rows=total)
    summary = {"rows": total, "rows_asked_for": config.size, "missing_rows": max(0, short)}
    return Succeeded(outputs=[output], summary=summary | {f"rows.{s}": n for s, n in sorted(sources.items())})


def quotas(config: MixConfig, available: Sequence[int]) -> list[int]:
    """Rows wanted of each part, summing up to `size` where an `auto` part exists that has rows.

    Shares are rounded; what they leave goes to `auto` parts by their row counts (largest remainders first).
    """
    wanted = [0 if p.share == "auto" else round(p.share * config.size) for p in config.parts]
    auto = [i for i, p in enumerate(config.parts) if p.share == "auto"]
    left = max(0, config.size - sum(wanted))
    total = sum(available[i] for i in auto)
    if total == 0:
        return wanted
    exact = {i: left * available[i] / total for i in auto}
    for i in auto:
        wanted[i] = int(exact[i])
    leftover = left - sum(wanted[i] for i in auto)
    for i in sorted(auto, key=lambda i: (wanted[i] - exact[i], i))[:leftover]:
        wanted[i] += 1
    return wanted


def _sides(stage: Stage, name: str, part: MixPart, config: MixConfig) -> int:
    """Candidates that one row of a part gives."""
    kind = stage.dataset(name).kind
    slot = config.parts_slot
    if kind not in slot.allowed:
        raise BadInput(
            f"{name} is a dataset of {kind}, of which no mixture of {config.makes} can be made",
            code="wrong_dataset_kind",
            hint=f"Datasets of {listed(sorted(slot.allowed))} can be mixed.",
        )
    return 2 if kind == "preferences" and config.makes == "instructions" and part.side == "both" else 1


def _drawn(
    candidates: Iterable[dict[str, Any]], seed: list[int], wanted: int, available: int
) -> Iterator[dict[str, Any]]:
    """`wanted` of a part's candidates (all, where it has fewer), in the order of their rows, each at most once."""
    if wanted >= available:
        chosen = np.arange(available)
    else:
        random = np.random.Generator(np.random.PCG64(seed))
        chosen = np.sort(random.choice(available, size=wanted, replace=False))
    picks = iter(chosen.tolist())
    pick = next(picks, None)
    for place, row in enumerate(candidates):
        if pick is None:
            return
        if place == pick:
            yield row
            pick = next(picks, None)


def _pairs(stage: Stage, name: str) -> Iterator[dict[str, Any]]:
    """The pairs of a part, each with the dataset's name for a source where it has none."""
    dataset = stage.dataset(name).name
    for row in stage.rows(name):
        yield {**row, "source": row.get("source") or dataset}


def _candidates(stage: Stage, name: str, part: MixPart) -> Iterator[dict[str, Any]]:
    kind = stage.dataset(name).kind
    sides = ("chosen", "rejected") if part.side == "both" else (part.side,)
    for row in stage.rows(name):
        if kind == "preferences":
            for side in sides:
                yield {"prompt": row["prompt"], "response": row[side], "source": f"preferences.{side}"}
        else:
            source = row.get("source") or "instructions"
            place = {name: row[name] for name in GROUP_FIELDS if name in row}
            yield {"prompt": row["prompt"], "response": row["response"], "source": source, **place}
