"""What holds for stages of every kind: their common options, and why an input does not fit."""

from __future__ import annotations

from steerboard_contracts.conversions import how_to_convert
from steerboard_contracts.models import JUDGES, what_to_name
from steerboard_contracts.run_config import RunConfig
from steerboard_contracts.specs.slots import Slot
from steerboard_contracts.training import TrainingConfig

STAGE_OPTIONS = ("pool", "reuse")
"""Keys of every stage that say where it runs and whether a finished equal one is taken, not what it does."""


def needs_whole(config: RunConfig | None, slot: str) -> str | None:
    """The setting that lets this input be no adapter over its base, such as `strategy zero3`; None where it may be."""
    if isinstance(config, TrainingConfig):
        if config.strategy == "zero3":
            return "strategy zero3"
        if slot == "model" and config.lora is not None and config.lora.quantise != "none":
            return f"lora.quantise {config.lora.quantise}"
    if slot in ("reward", "rewards") and getattr(config, "engine", None) == "vllm":
        return "engine vllm"
    return None


def misfit(slot: Slot, what: str, given: str | None, dataset: str | None = None) -> str:
    """Why an input does not fit, and what would. `what` it is instead; `given`: its role or kind, None for what is no
    input at all; `dataset`: the name of one that can be converted."""
    wanted = " or ".join(sorted(slot.allowed))
    if slot.thing == "dataset":
        fitting = None if dataset is None else how_to_convert(dataset, given, slot.allowed)
        return f"needs a dataset of kind {wanted}; {what}" + (f". {fitting}" if fitting else "")
    way_out = f". {what_to_name(given, slot.allowed)}" if given in JUDGES and slot.allowed & JUDGES else ""
    return f"needs a model of role {wanted}; {what}{way_out}"


def adapter_misfit(name: str, setting: str) -> str:
    return f"`{name}` is an adapter over its base, which {setting} does not take; take one that was merged"
