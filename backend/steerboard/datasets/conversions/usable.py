"""What a method learns from rows of a kind: how many, and why not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from steerboard.datasets.conversions.facts import PromptKey
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.samples import SampleKind
from steerboard_contracts.specs.method import MethodSpec


class Learnable(NamedTuple):
    """What decides whether a method learns from a row, of a dataset or of what a conversion would make of it."""

    prompt: PromptKey
    held_out: bool
    equal_sides: bool = False
    desirable: bool | None = None
    reward: float | None = None


class Usable(NamedTuple):
    """`train` and `held_out` count what the method gets; `left_out` rows of which it learns nothing. `why_not`: why
    it cannot be trained on them."""

    train: int
    held_out: int
    left_out: int
    why_not: str | None


def usable(spec: MethodSpec, kind: SampleKind, rows: Sequence[Learnable]) -> Usable:
    """What is usable by the method's defaults, before anything is tokenised."""
    z, fault = _scores(spec, rows)
    if fault is not None:
        return Usable(0, 0, 0, fault)
    kept = [row for row, value in zip(rows, z, strict=True) if not _is_left_out(spec, row, value)]
    each = 2 if spec.splits_pairs and kind == "preferences" else 1
    train = [row for row in kept if not row.held_out]
    result = Usable(len(train) * each, (len(kept) - len(train)) * each, len(rows) - len(kept), None)
    return result._replace(why_not=_why_not(spec, kind, rows, train))


def _scores(spec: MethodSpec, rows: Sequence[Learnable]) -> tuple[list[float | None], str | None]:
    """z of each row where the method asks for rewards, or why there is none."""
    if not spec.learns_from_rewards:
        return [None] * len(rows), None
    rewards = [row.reward for row in rows if row.reward is not None]
    if len(rewards) < len(rows):
        return [], f"{len(rows) - len(rewards):,} rows have no reward"
    try:
        normaliser = Normaliser.fit(rewards, "rows")
    except SteerboardError as error:
        return [], error.detail
    return [normaliser.z(reward) for reward in rewards], None


def _is_left_out(spec: MethodSpec, row: Learnable, z: float | None) -> bool:
    if spec.leaves_out == "equal_sides" and row.equal_sides:
        return True
    if spec.preview is not None and spec.preview.kind == "selection" and z is not None:
        threshold = spec.config.model_fields[spec.preview.fields["threshold"]].default
        return not z > threshold
    return False


def _why_not(spec: MethodSpec, kind: SampleKind, rows: Sequence[Learnable], train: Sequence[Learnable]) -> str | None:
    if not rows:
        return "no row is left"
    if all(row.held_out for row in rows):
        return "all rows are held out, so none are left for training"
    if not train:
        return f"{spec.label} would leave out every training row"
    if "both_thumbs" in spec.needs and kind == "unpaired":
        desirable = sum(bool(row.desirable) for row in train)
        if desirable in (0, len(train)):
            return one_sided(spec, len(train), bool(desirable))
    if "two_prompts" in spec.needs and len({row.prompt for row in train}) < 2:
        return one_prompt(spec)
    return None


def one_sided(spec: MethodSpec, rows: int, desirable: bool) -> str:
    """Why answers with one kind of thumb do not do."""
    have, lack = ("desirable", "undesirable") if desirable else ("undesirable", "desirable")
    other = ", or convert these to instructions for another method" if desirable else ""
    return f"all {rows:,} training rows are {have}, and {spec.label} needs both kinds: add {lack} answers{other}"


def one_prompt(spec: MethodSpec) -> str:
    """Why answers to a single prompt do not do."""
    return (
        f"all training rows answer one prompt, and {spec.label} compares answers to different prompts: add rows with "
        "other prompts"
    )
