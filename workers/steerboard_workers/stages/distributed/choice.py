"""Which strategy a run trains by."""

from __future__ import annotations

import torch
from accelerate import Accelerator

from steerboard_contracts.training import TrainingConfig
from steerboard_workers.stages.distributed.strategies import DDPStrategy, Strategy
from steerboard_workers.stages.models.model_io import pick_device, pick_dtype


def strategy_of(config: TrainingConfig, device: str) -> Strategy:
    """Chooses the strategy and joins the other processes, when there are any."""
    where = pick_device(device)
    mixed = pick_dtype(config.precision, where) is torch.bfloat16
    if config.strategy == "ddp":
        return DDPStrategy(
            config, Accelerator(mixed_precision="bf16" if mixed else "no", cpu=where.type == "cpu"), mixed
        )
    from steerboard_workers.stages.distributed.zero import ZeROStrategy  # DeepSpeed takes seconds to import

    return ZeROStrategy(config, Accelerator(cpu=where.type == "cpu"), mixed)
