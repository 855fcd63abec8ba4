"""How the processes of a training run share its work: replicas that average gradients, or ZeRO by DeepSpeed.

Either way a step is the same step up to rounding. What must survive is handed out and taken back by parameter, whole
and in float32, so that a checkpoint fits any number of processes and a saved model is whole.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from steerboard_contracts.training import TrainingConfig
from steerboard_workers.alignment.modules import JointModule, PolicyModule, RewardModule
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

Module = PolicyModule | RewardModule | JointModule
Named = tuple[str, Tensor]


class Strategy(Protocol):
    """Made before the model is loaded; `share` is called once, with the model on the CPU or wherever it was loaded.

    `module` is what forwards go through, `dtype` what weights are loaded in; `mixed`: activations are in bf16.
    """

    accelerator: Accelerator
    dtype: torch.dtype
    mixed: bool
    module: nn.Module

    def loading(self) -> contextlib.AbstractContextManager[None]:
        """Models are loaded inside of it, by every process."""
        ...

    def share(self, module: Module, rates: Rates = ALIKE) -> None:
        """Bring the module to the devices and make its optimiser. `rates`: what multiplies the learning rate of each
        part of a `JointModule`."""
        ...

    def frozen(self, module: Module) -> nn.Module:
        """Bring a module that no step changes to the devices. Returns what its forwards go through."""
        ...

    def forwards(self) -> contextlib.AbstractContextManager[None]:
        """Around all the forwards of a step, so that weights are cast once a step and not once a micro-batch."""
        ...

    def backward(self, loss: Tensor, last: bool) -> None:
        """Add the gradients of a micro-batch's loss, a scalar; after the `last` of a step they are those of all
        processes."""
        ...

    def accumulating(self, last: bool) -> contextlib.AbstractContextManager[None]:
        """Around forward and backward of one micro-batch."""
        ...

    def step(self, lr: float, held: Collection[str] = ()) -> float:
        """Clip, update, forget the gradients. Returns their norm before clipping. `held`: parts of a `JointModule`
        whose weights stay as they are."""
        ...

    def set_rates(self, rates: Rates) -> None:
        """Other rates than those of `share`, from the next step on."""
        ...

    def forget_gradients(self) -> None:
        """Forgets the gradients of a step that was begun and not ended."""
        ...

    def set_steps(self, count: int) -> None:
        """How many steps AdamW believes to have made."""
        ...

    def state(self, *, moments: bool = True) -> Iterator[Named]:
        """Trained weights, and with `moments` what AdamW remembers, for a checkpoint. Every process must read it to its
        end; only the main one gets tensors that mean something."""
        ...

    def restore(self, state: Iterable[Named], keys: set[str], step: int) -> None:
        """Take back what `state` gave after `step` steps, where moments may be missing; every process gets all of it.
        Raises `BadCheckpoint`."""
        ...

    def whole(self, trained_only: bool = False, of: nn.Module | None = None) -> Iterator[Named]:
        """Every parameter and persistent buffer of the model by its name there, tied ones once, likewise. `of`: another
        model that is trained with it."""
        ...

    def forward_weights(self, model: nn.Module) -> Iterator[Named]:
        """The tensors of a trained model as its forwards see them, by their names there, tied ones under each. Every
        process gets all of them, and must read to the end; a tensor is whole until the next one is asked for."""
        ...


class DDPStrategy:
    """One process, or several with the whole model each (DDP). Weights are float32, bf16 is autocast."""

    dtype = torch.float32
    module: nn.Module

    def __init__(self, config: TrainingConfig, accelerator: Accelerator, mixed: bool) -> None:
        self.accelerator = accelerator
        self.mixed = mixed
        self._config = config

    def loading(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def share(self, module: Module, rates: Rates = ALIKE) -> None:
        self._bare = module.to(self.accelerator.device)
        self._own = trained(module)
        self._optimiser = adamw(module, self._config, rates)
        self.module, _ = self.accelerator.prepare(module, self._optimiser)

    def frozen(self, module: Module) -> nn.Module:
        return module.to(self.accelerator.device)

    def forwards(self) -> contextlib.AbstractContextManager[None]:
        autocast: contextlib.AbstractContextManager[None] = self.accelerator.autocast()
        return autocast

    def accumulating(self, last: bool) -> contextlib.AbstractContextManager[None]:
        self.accelerator.sync_gradients = last
        if last:
            return contextlib.nullcontext()
        alone: contextlib.AbstractContextManager[None] = self.accelerator.no_sync(self.module)
        return alone

    def backward(self, loss: Tensor, last: bool) -> None:
        self.accelerator.backward(loss)

    def step(self, lr: float, held: Collection[str] = ()) -> float:
        norm = self.accelerator.clip_grad_norm_(self._own.values(), self._config.max_grad_norm)
        set_lr(self._optimiser.param_groups, lr, held)
        self._optimiser.step()
        self._optimiser.zero_grad()
        return float(norm)

    def set_rates(self, rates: Rates) -> None:
        rescale(self._optimiser.param_groups, rates)

    def forget_gradients(self) -> None:
        self._optimiser.zero_grad()

    def set_steps(self, count: int) -> None:
        for state in self._optimiser.state.values():
            state["step"].fill_(count)

    def state(self, *, moments: bool = True) -> Iterator[Named]:
        for name, parameter in self._own.items():
            yield key(WEIGHT, name), parameter.detach()
            for moment in MOMENTS if moments else ():
                if moment in self._optimiser.state[parameter]:
                    yield key(moment, name), self._optimiser.state[parameter][moment]

    @torch.no_grad()
    def restore(self, state: Iterable[Named], keys: set[str], step: int) -> None:
        check_complete(keys, self._own)
        for name, tensor in state:
            what, parameter = parted(name, self._own)
            if what == WEIGHT:
                parameter.copy_(tensor)
                continue
            if not self._optimiser.state[parameter]:
                self._optimiser.state[parameter] = first_state(parameter)
            self._optimiser.state[parameter][what].copy_(tensor)
        self.set_steps(step)

    def whole(self, trained_only: bool = False, of: nn.Module | None = None) -> Iterator[Named]:
        model = of or self._bare.model
        learned = trained(model)
        return ((name, t) for name, t in unshared(model) if name in learned or not trained_only)

    def forward_weights(self, model: nn.Module) -> Iterator[Named]:
        yield from model.state_dict().items()


def unshared(module: nn.Module) -> Iterator[Named]:
    """Parameters and persistent buffers by name, tied ones once. The tensors are the module's own, not copies."""
    seen: set[int] = set()
    for name, tensor in module.state_dict().items():
        if tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            yield name, tensor
