"""Kahneman-Tversky optimisation: Section 4.1 of arXiv 2402.01306.

    loss = mean over answers of lambda_D sigma(beta (z - r)) if desirable, else lambda_U sigma(beta (r - z)),
    r = log pi(y | x) - log pi_ref(y | x),   z = max(0, mean of log pi(y' | x) - log pi_ref(y' | x)), without gradient,

where y' answers another prompt. The paper shifts the answers of a micro-batch by one. Here each row gets its y' once,
by a permutation of all answers of its split that never gives a prompt an answer of its own, and z is the mean over the
rows of the global batch. That has the same expectation, and

- z depends on the step's rows alone: not on micro-batches, on the number of processes, or on where a run resumed;
- the reference reads y' in the same cached pass as y, so it is in memory in no step; answers of the batch itself would
  be different ones in each epoch and for each seed;
- a batch of one, or of one class, has its z, and the y' of a row from a pair is never the other side of its pair.

Both sides of a pair come in the same step. There and in the reference's pass they are behind one copy of their prompt,
and so are the two y' that it has.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from steerboard_contracts.conversions import how_to_convert
from steerboard_contracts.errors import BadInput
from steerboard_contracts.methods.kto import SPEC, KtoConfig
from steerboard_contracts.specs.method import Reads
from steerboard_contracts.tools import answer_parts
from steerboard_contracts.wording import listed
from steerboard_workers.alignment.batches.batching import MicroBatch
from steerboard_workers.alignment.batches.mismatch import mismatched, partners
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.losses import sequence_sums
from steerboard_workers.alignment.objectives import Objective, Passes
from steerboard_workers.alignment.pair_sides import fault_of
from steerboard_workers.alignment.pairs import Responses
from steerboard_workers.alignment.rendering.render import RenderedGroup
from steerboard_workers.alignment.training_method import Row, Selection, Source, TrainingMethod

# What Section 4.2 of the paper recommends lambda_D n_D / (lambda_U n_U) to be between.
RATIOS = (1.0, 4 / 3)
HIGHEST_LR = 1e-6


class Kto(TrainingMethod[KtoConfig]):
    """Rows with a thumb, or pairs, each of which makes a desirable and an undesirable one."""

    fields: ClassVar[tuple[str, ...]] = ("prompt",)

    def __init__(self, config: KtoConfig) -> None:
        super().__init__(config)
        self._counts: Counter[str] = Counter()
        # Training rows by whether they are desirable, before any is left out for its length.
        self._selected: Counter[bool] = Counter()

    def select(self, rows: list[Row], source: Source) -> Selection:
        summary = {"empty_answers": 0, "equal_pairs": 0, "tied_pairs": 0}
        kept = [answer for number, row in enumerate(rows) for answer in _answers(row, number, source, summary)]
        self._prompts = {row["row"]: _identity(row) for row in kept}
        self._pairs = {row["row"] for row in rows if "chosen" in row}
        self._counts = Counter(equal_pairs=summary["equal_pairs"], cut_companions=0)
        train = [row["desirable"] for row in kept if row["split"] != "held_out"]
        self._name, self._selected = source.name, Counter(train)
        summary |= {"desirable": sum(train), "undesirable": len(train) - sum(train)}
        notes = [f"{summary['desirable']} desirable and {summary['undesirable']} undesirable answers to learn from"]
        if any("chosen" in row for row in rows):
            notes.append(f"{len(rows)} pairs became {len(kept)} answers")
        empty, equal, tied = (summary[name] for name in ("empty_answers", "equal_pairs", "tied_pairs"))
        if empty or equal or tied:
            notes.append(f"left out: {empty} empty answers, {equal} pairs of equal sides; {tied} pairs have margin 0")
        warnings = self._warnings(summary["desirable"], summary["undesirable"], source) if train else []
        return Selection(kept, summary=summary, notes=notes, warnings=warnings)

    def _warnings(self, desirable: int, undesirable: int, source: Source) -> list[str]:
        config = self.config
        if not (desirable and undesirable):
            have, lack = ("desirable", "undesirable") if desirable else ("undesirable", "desirable")
            raise BadInput(
                f"all {desirable + undesirable} training rows of {source.name} are {have}: KTO needs both kinds",
                code="one_sided_data",
                hint=f"Add {lack} answers"
                + (", or learn the desirable ones with another method, such as SFT." if desirable else "."),
            )
        warnings = []
        ratio = config.lambda_desirable * desirable / (config.lambda_undesirable * undesirable)
        low, high = RATIOS
        if not low - 1e-9 <= ratio <= high + 1e-9:
            at = config.lambda_undesirable * undesirable / desirable
            warnings.append(
                f"lambda_desirable x {desirable} to lambda_undesirable x {undesirable} is {ratio:.3g} : 1, and "
                f"should be between 1 : 1 and 4 : 3; with lambda_undesirable {config.lambda_undesirable:g} that is a "
                f"lambda_desirable from {low * at:.3g} to {high * at:.3g}"
            )
        if config.lr > HIGHEST_LR and config.strength <= 0.1 and config.reduction == "sum" and config.lora is None:
            warnings.append(
                f"lr {config.lr:g} is high for beta {config.strength:g}: KTO is stable up to about {HIGHEST_LR:g}"
            )
        return warnings

    def example(self, number: int, row: Row, group: RenderedGroup) -> Example:
        """Undesirable answers have negative weights."""
        config = self.config
        return Example.of(
            number, group, weight=config.lambda_desirable if row["desirable"] else -config.lambda_undesirable
        )

    @property
    def shares_prompt(self) -> bool:
        return True

    def relate(self, train: list[Example], held_out: list[Example], max_length: int) -> None:
        """Held-out rows get answers of held-out rows, unless all of these answer one prompt. First, pairs whose sides
        are equal where they were cut are left out of the lists. Raises `BadInput` (`one_sided_data`, `one_prompt`)."""
        fitting = _classes(train)
        for part in (train, held_out):
            part[:] = self._unequal(part)
        self._check_both(fitting, train, max_length)
        of_train, of_held_out = self._places(train), self._places(held_out)
        pool = [*held_out, *train] if of_held_out is None and held_out else held_out
        if of_held_out is None and held_out:
            of_held_out = self._places(pool)
        if of_train is None or of_held_out is None:
            raise BadInput(
                "all training rows answer one prompt, and KTO compares with answers to other prompts",
                code="one_prompt",
                hint="Add rows with other prompts.",
            )
        for part, places, others in ((train, of_train, list(train)), (held_out, of_held_out, list(pool))):
            for at, (example, place) in enumerate(zip(list(part), places, strict=False)):
                companion = mismatched(example, others[place], max_length)
                part[at] = replace(example, companion=companion)
                self._counts["cut_companions"] += len(companion.responses[0]) < len(others[place].responses[0])

    def _unequal(self, examples: Sequence[Example]) -> list[Example]:
        """The examples without pairs whose sides are the same tokens. Each side is cut by itself, so prompts may differ
        as well."""
        sides: dict[int, list[Example]] = {}
        for example in examples:
            if example.row in self._pairs:
                sides.setdefault(example.row, []).append(example)
        equal = {row for row, examples in sides.items() if len(examples) == 2 and _same_tokens(*examples)}
        self._counts["equal_pairs"] += len(equal)
        return [example for example in examples if example.row not in equal]

    def _check_both(self, fitting: Counter[bool], train: Sequence[Example], max_length: int) -> None:
        """`fitting`: classes of `train` before pairs of equal sides were left out. Raises `BadInput`
        (`one_sided_data`)."""
        left = _classes(train)
        self._counts["desirable"], self._counts["undesirable"] = left[True], left[False]
        if not train or (left[True] and left[False]):
            return
        lacking = not left[True]
        have, lack = ("undesirable", "desirable") if lacking else ("desirable", "undesirable")
        too_long, equal = self._selected[lacking] - fitting[lacking], fitting[lacking]
        why = [f"{too_long} do not fit into {max_length} tokens"] if too_long else []
        why += [f"{equal} are in pairs whose sides are equal where they were cut"] if equal else []
        truncate = ", or set too_long to truncate" if self.config.too_long == "drop" else ""
        raise BadInput(
            f"all {len(train)} training rows that are left of {self._name} are {have}, and KTO needs both kinds: of "
            f"the {self._selected[lacking]} {lack} ones, {listed(why)}",
            code="one_sided_data",
            hint=f"Raise max_length{truncate}.",
        )

    def _places(self, examples: Sequence[Example]) -> list[int] | None:
        return partners([self._prompts[example.row] for example in examples]) if examples else []

    def rewards(self, responses: Responses) -> Tensor:
        """(S,) r of each response, without beta; over all that is learned of its sequence."""
        assert responses.reference is not None
        ratios = responses.log_probs + responses.before - responses.reference
        return ratios / (responses.lengths + responses.before_lengths) if self.config.reduction == "mean" else ratios

    def summary(self, evaluated: dict[str, float], held_out: int) -> dict[str, Any]:
        """`desirable` and `undesirable`: training rows that are left. `cut_companions`: rows whose
        answer to another prompt was cut to fit behind their own."""
        return super().summary(evaluated, held_out) | self._counts

    def objective(self) -> Objective:
        return KtoObjective(self.config.strength, self.config.reduction == "mean")


def _answers(row: Row, number: int, source: Source, counts: dict[str, int]) -> list[Row]:
    """What a row of either kind makes, less equal sides and empty texts. Raises `BadInput` for other kinds."""
    row.setdefault("row", number)
    if "chosen" in row and "rejected" in row:
        # A pair with one empty side has its other side as an answer all the same.
        if fault_of(row) == "equal_pairs":
            counts["equal_pairs"] += 1
            return []
        counts["tied_pairs"] += row.get("margin") == 0
        both = {name: value for name, value in row.items() if name not in ("chosen", "rejected")}
        answers = [both | {"response": row[side], "desirable": side == "chosen"} for side in ("chosen", "rejected")]
    elif "response" in row and isinstance(row.get("desirable"), bool):
        answers = [row]
    else:
        raise BadInput(
            f"dataset {source.name}: row {row['row']} has neither a response with `desirable` nor a chosen and "
            "a rejected one",
            code="wrong_dataset_kind",
            hint=(how_to_convert(source.name, "labelled", SPEC.data) if "reward" in row else None)
            or "Give a dataset of kind unpaired or preferences.",
        )
    kept = [answer for answer in answers if any(answer_parts(answer["response"]))]
    counts["empty_answers"] += len(answers) - len(kept)
    return kept


def _classes(examples: Sequence[Example]) -> Counter[bool]:
    """How many are desirable."""
    return Counter(example.weight > 0 for example in examples)


def _same_tokens(one: Example, other: Example) -> bool:
    return np.array_equal(one.prompt, other.prompt) and np.array_equal(one.responses[0], other.responses[0])


def _identity(row: Row) -> bytes:
    return hashlib.blake2b(json.dumps(row["prompt"], sort_keys=True).encode(), digest_size=16).digest()


class KtoObjective:
    """`mean`: log-probs are per token. Weights are lambda_D of desirable and -lambda_U of undesirable answers."""

    reads: Reads = "labels"
    measures: tuple[str, ...] = (
        *("loss_sum", "answers", "kl"),
        *("desirable", "desirable_ratio", "desirable_log_probs"),
        *("undesirable", "undesirable_ratio", "undesirable_log_probs"),
    )

    def __init__(self, beta: float, mean: bool = False) -> None:
        self._beta = beta
        self._mean = mean

    def count(self, examples: Sequence[Example]) -> float:
        return float(len(examples))

    def prepare(self, examples: Sequence[Example], passes: Passes) -> Mapping[str, Tensor]:
        """Two scalars: `kl`, the mean log-ratio of the batch's mismatched answers, and `z`, which is not below 0."""
        others = [example.companion for example in examples if example.companion is not None]
        ratios = []
        for other, learner in zip(others, passes.per_sequence(others), strict=True):
            ratio = float(learner[0]) - float(other.frozen_log_probs["reference"][0])
            ratios.append(ratio / other.labels if self._mean else ratio)
        kl = math.fsum(ratios) / len(ratios)
        return {"kl": torch.tensor(kl, dtype=torch.float32), "z": torch.tensor(max(0.0, kl), dtype=torch.float32)}

    def forward(self, output: Any, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        log_probs = sequence_sums(output[0], batch.label_counts)
        ratios = log_probs - batch.frozen_log_probs["reference"]
        if self._mean:
            log_probs, ratios = log_probs / batch.label_counts, ratios / batch.label_counts
        loss = kto(ratios, batch.prepared["z"], batch.weights, self._beta)
        with torch.no_grad():
            desirable = (batch.weights > 0).double()
            kinds = [
                figure
                for kind in (desirable, 1 - desirable)
                for figure in (kind.sum(), (kind * ratios.double()).sum(), (kind * log_probs.double()).sum())
            ]
            answers = torch.tensor(len(ratios), dtype=torch.float64, device=loss.device)
            sums = torch.stack([loss.double(), answers, answers * batch.prepared["kl"].double(), *kinds])
        return loss, sums

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        """`kl` may be below 0, and z is not; figures of a class that the batch does not have are left out."""
        kl = sums["kl"] / sums["answers"]
        figures = {"loss": sums["loss_sum"] / sums["answers"], "kl": kl, "z": max(0.0, kl)}
        for kind in ("desirable", "undesirable"):
            if n := sums[kind]:
                figures[f"reward_{kind}"] = self._beta * sums[f"{kind}_ratio"] / n
                figures[f"log_probs_{kind}"] = sums[f"{kind}_log_probs"] / n
        if {"reward_desirable", "reward_undesirable"} <= figures.keys():
            figures["margin"] = figures["reward_desirable"] - figures["reward_undesirable"]
        return figures

    def batch_metrics(self, examples: Sequence[Example]) -> dict[str, float]:
        return {}


def kto(ratios: Tensor, z: Tensor, weights: Tensor, beta: float) -> Tensor:
    """sum |w| (1 - sigma(sign(w) beta (r - z))): Section 4.1 of arXiv 2402.01306. ratios, weights (S,)."""
    return (weights.abs() * torch.sigmoid(weights.sign() * beta * (z - ratios))).sum()
