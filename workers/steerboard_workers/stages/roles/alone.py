"""How a unit computes: as training does, on its own."""

from __future__ import annotations

import torch
from accelerate import Accelerator

from steerboard_contracts.online_config import OnlineConfig
from steerboard_workers.stages.distributed.strategies import DDPStrategy
from steerboard_workers.stages.models.model_io import pick_device, pick_dtype
from steerboard_workers.stages.runtime import Stage


def alone(stage: Stage, config: OnlineConfig) -> DDPStrategy:
    """Forwards on this process's device, without others, as training does them."""
    device = pick_device(stage.spec.device)
    mixed = pick_dtype(config.precision, device) is torch.bfloat16
    accelerator = Accelerator(mixed_precision="bf16" if mixed else "no", cpu=device.type == "cpu")
    return DDPStrategy(config, accelerator, mixed)
