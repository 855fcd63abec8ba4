"""ZeRO stages 2 and 3 by DeepSpeed (arXiv 1910.02054), with the optimiser or all weights in the host's memory if asked.

DeepSpeed is driven directly: Accelerate's plugin refuses processors without a GPU, and steps inside of backward. What
is spread over processes is gathered one parameter at a time, so no process ever holds a second model in memory.
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from steerboard_contracts.training import TrainingConfig
from steerboard_workers.stages.distributed.optimiser import (
    ALIKE,
    MOMENTS,
    WEIGHT,
    Rates,
    adamw,
    check_complete,
    first_state,
    key,
    parted,
    rescale,
    set_lr,
    trained,
)
from steerboard_workers.stages.distributed.strategies import Module, Named


class ZeROStrategy:
    """Gradients and AdamW's float32 states are sharded over the processes, under zero3 the weights too.

    `mixed`: weights and activations in bf16, with float32 master weights and float32 accumulation of gradients.
    """

    module: nn.Module

    def __init__(self, config: TrainingConfig, accelerator: Accelerator, mixed: bool) -> None:
        self.accelerator = accelerator
        self.mixed = mixed
        self.dtype = torch.bfloat16 if mixed else torch.float32
        self._config = config
        self._spread = config.strategy == "zero3"
        if accelerator.device.type == "cpu":
            os.environ["DS_ACCELERATOR"] = "cpu"
        import deepspeed

        # Otherwise it compiles an exchange of its own for processors, under a lock that stays when a process is killed
        # meanwhile, and for which every later one on the machine would wait for ever. Gloo needs nothing.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
        deepspeed.init_distributed(
            dist_backend="gloo" if accelerator.device.type == "cpu" else "nccl", auto_mpi_discovery=False
        )
        self._deepspeed = deepspeed
        self._settings = settings(config, mixed)

    @contextlib.contextmanager
    def loading(self) -> Iterator[None]:
        """No process ever holds the whole model under zero3: each keeps its part of every tensor as it is read."""
        if not self._spread:
            yield
            return
        from transformers.integrations import HfDeepSpeedConfig

        # transformers holds only a weak reference: while this lives, models are spread as they are loaded.
        announced = HfDeepSpeedConfig(self._settings)
        try:
            yield
        finally:
            del announced
            gc.collect()

    def share(self, module: Module, rates: Rates = ALIKE) -> None:
        self._bare = module
        self._own = trained(module)
        optimiser = adamw(module, self._config, rates)
        self._engine, *_ = self._deepspeed.initialize(
            model=module, optimizer=optimiser, config=self._settings, dist_init_required=False
        )
        self.module = self._engine
        self._make_states()

    def frozen(self, module: Module) -> nn.Module:
        """The module for reading; its weights are spread, too, under zero3."""
        if not self._spread:
            return module.to(self.accelerator.device)
        without_optimiser = {name: value for name, value in self._settings.items() if name != "gradient_clipping"}
        engine, *_ = self._deepspeed.initialize(model=module, config=without_optimiser, dist_init_required=False)
        wrapped: nn.Module = engine
        return wrapped

    def forwards(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def accumulating(self, last: bool) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def backward(self, loss: Tensor, last: bool) -> None:
        self._engine.set_gradient_accumulation_boundary(is_boundary=last)
        self._engine.backward(loss)

    def step(self, lr: float, held: Collection[str] = ()) -> float:
        set_lr(self._engine.optimizer.param_groups, lr, held)
        self._engine.step()
        return float(self._engine.get_global_grad_norm())

    def set_rates(self, rates: Rates) -> None:
        rescale(self._engine.optimizer.param_groups, rates)

    def forget_gradients(self) -> None:
        self._engine.optimizer.zero_grad()

    def set_steps(self, count: int) -> None:
        for state in self._engine.optimizer.optimizer.state.values():
            state["step"].fill_(count)

    def state(self, *, moments: bool = True) -> Iterator[Named]:
        utils = self._deepspeed.utils
        for name, parameter in self._own.items():
            yield key(WEIGHT, name), utils.safe_get_full_fp32_param(parameter)
            for moment in MOMENTS if moments else ():
                yield key(moment, name), utils.safe_get_full_optimizer_state(parameter, moment)

    @torch.no_grad()
    def restore(self, state: Iterable[Named], keys: set[str], step: int) -> None:
        check_complete(keys, self._own)
        self.set_steps(step)
        utils = self._deepspeed.utils
        for name, tensor in state:
            what, parameter = parted(name, self._own)
            if what != WEIGHT:
                utils.safe_set_full_optimizer_state(parameter, tensor, what)
                continue
            utils.safe_set_full_fp32_param(parameter, tensor)
            # The weights that forwards see are separate tensors from the float32 ones.
            with self._gathered([parameter], modifier=0):
                if not self._spread or self.accelerator.is_main_process:
                    parameter.data.copy_(tensor)

    def whole(self, trained_only: bool = False, of: nn.Module | None = None) -> Iterator[Named]:
        model = of or self._bare.model
        parameters = dict(model.named_parameters())
        for name, parameter in parameters.items():
            if parameter.requires_grad:
                yield name, self._deepspeed.utils.safe_get_full_fp32_param(parameter)
            elif not trained_only:
                with self._gathered([parameter]):
                    yield name, parameter.detach().clone()
        tied = dict(model.named_parameters(remove_duplicate=False))
        for name, tensor in model.state_dict().items():
            if name not in tied and not trained_only:
                yield name, tensor

    def forward_weights(self, model: nn.Module) -> Iterator[Named]:
        parameters = dict(model.named_parameters(remove_duplicate=False))
        for name, tensor in model.state_dict().items():
            if name not in parameters:
                yield name, tensor
                continue
            with self._gathered([parameters[name]]):
                yield name, parameters[name].detach()

    def _make_states(self) -> None:
        """AdamW's states, which it would make in its first step, when DeepSpeed would look for those of the first
        parameter group alone and lose sight of the others."""
        optimiser = self._engine.optimizer
        flat = optimiser.fp32_partitioned_groups_flat if self._spread else optimiser.single_partition_of_fp32_groups
        for partition in flat:
            optimiser.optimizer.state[partition] = first_state(partition)
        if not self._spread:
            optimiser._lazy_init_hp_params_optimizer_state()

    def _gathered(
        self, parameters: list[nn.Parameter], modifier: int | None = None
    ) -> contextlib.AbstractContextManager[Any]:
        """A context with whole parameters under zero3; what process `modifier` writes reaches the others."""
        if not self._spread:
            return contextlib.nullcontext()
        gathered: contextlib.AbstractContextManager[Any] = self._deepspeed.zero.GatheredParameters(
            parameters, modifier_rank=modifier
        )
        return gathered


def settings(config: TrainingConfig, mixed: bool) -> dict[str, Any]:
    """DeepSpeed's own configuration. Micro-batches and learning rates are ours, so it gets one a step."""
    # Norms and biases stay whole everywhere: to fetch them each time costs more than they weigh.
    stage: dict[str, Any] = {
        "stage": 3 if config.strategy == "zero3" else 2,
        "stage3_param_persistence_threshold": 10_000,
    }
    if config.offload != "none":
        stage["offload_optimizer"] = {"device": "cpu", "pin_memory": torch.cuda.is_available()}
    if config.offload == "all":
        stage["offload_param"] = {"device": "cpu", "pin_memory": torch.cuda.is_available()}
    options: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": config.max_grad_norm,
        "zero_optimization": stage,
        "zero_allow_untested_optimizer": True,
        # torch's fused AdamW is vectorised on a processor too, and needs no compiler on the worker.
        "zero_force_ds_cpu_optimizer": False,
        "steps_per_print": 1 << 30,
    }
    if mixed:
        options |= {"bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"}}
    return options
