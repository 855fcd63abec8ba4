"""What holds for stages of every kind: their common options, and inputs that may be no adapter over its base."""

from __future__ import annotations

from steerboard_contracts.configs import RunConfig
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


def adapter_misfit(name: str, setting: str) -> str:
    return f"`{name}` is an adapter over its base, which {setting} does not take; take one that was merged"
