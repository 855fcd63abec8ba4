"""The experts of the models that learn: their routers' load-balancing loss, and how evenly a step uses them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from steerboard_contracts.errors import BadInput
from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.training import TrainingConfig
from steerboard_workers.alignment.balance import assigned, balance_loss, load_figures, loads, probabilities
from steerboard_workers.alignment.batches.batching import Batcher, MicroBatch
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.modules import JointModule
from steerboard_workers.alignment.replay import GATES, Routes, differing, share_differing
from steerboard_workers.alignment.routers import Routers
from steerboard_workers.stages.distributed.strategies import Strategy
from steerboard_workers.stages.models.adapters import is_adapted

Over = Literal["batch", "pass"]


@dataclass(frozen=True)
class Mixture:
    """A model with experts. `coefficient`: of its load-balancing loss, 0 without."""

    routers: Routers
    coefficient: float

    @classmethod
    def of(cls, model: Any, config: TrainingConfig) -> Mixture | None:
        """Returns None for a model without routers. Freezes them if asked: raises `BadInput` (`bad_config`) where LoRA
        adapts them."""
        routers = Routers.of(model)
        if routers is None:
            return None
        if config.freeze_router:
            if any(is_adapted(name) for router in routers.modules for name, _ in router.named_parameters()):
                raise BadInput(
                    f"LoRA adapts the routers of {type(model).__name__}, which freeze_router is to leave as they are",
                    code="bad_config",
                    hint="Use lora.targets: attention, or leave freeze_router out.",
                )
            routers.freeze()
        own = getattr(model.config.get_text_config(), "router_aux_loss_coef", None)
        coefficient = config.router_aux_loss if config.router_aux_loss is not None else float(own or 0.0)
        return cls(routers, coefficient if routers.gives_loss and not config.freeze_router else 0.0)


class Experts:
    """The mixtures among the models that learn, by the names that they have in a `JointModule`; there may be none.

    Made before the models are shared. Raises `BadInput` for settings of what the main model has not (`no_router`), or
    what cannot be replayed (`routes_not_replayed`).
    """

    def __init__(self, models: Mapping[str, Any], config: TrainingConfig, sharing: Strategy) -> None:
        found = {name: Mixture.of(model, config) for name, model in models.items()}
        self.mixtures = {name: mixture for name, mixture in found.items() if mixture is not None}
        self._single = len(models) == 1
        _check_has_routers(models[JointModule.MAIN], self.mixtures.get(JointModule.MAIN), config)
        if isinstance(config, OnlineConfig) and config.replays_routes:
            _check_can_replay(models[JointModule.MAIN], self.mixtures.get(JointModule.MAIN))
        self._over: Over = config.router_balance
        self._sharing = sharing

    def balances(self, name: str) -> bool:
        """Whether the load-balancing loss of the model of that name counts."""
        return name in self.mixtures and self.mixtures[name].coefficient > 0

    def step(self, examples: Sequence[Example], mine: Sequence[list[Example]], batcher: Batcher) -> RoutedStep | None:
        """What an optimiser step on `examples` routes, of which `mine` are the passes of this process; an empty one
        counts nothing. Every process comes here, with as many passes. None without mixtures."""
        if not self.mixtures:
            return None
        step = RoutedStep(self, self._over, sum(e.tokens for e in examples), self._sharing, alone=len(mine) == 1)
        balanced = [name for name, mixture in self.mixtures.items() if mixture.coefficient]
        if self._over == "batch" and len(mine) > 1:
            for name in balanced:
                step.known[name] = self._assigned(name, examples, mine, batcher)
        return step

    @contextlib.contextmanager
    def recording(self) -> Iterator[dict[str, list[Routes]]]:
        """The routes of each mixture in a forward pass inside of it."""
        with contextlib.ExitStack() as open_ones:
            yield {name: open_ones.enter_context(m.routers.recording()) for name, m in self.mixtures.items()}

    @torch.no_grad()
    def _assigned(
        self, name: str, examples: Sequence[Example], mine: Sequence[list[Example]], batcher: Batcher
    ) -> Tensor:
        """Assignments (E,) of all passes of all processes, by forward passes that draw what those of the step will."""
        module, device = self._sharing.module, self._sharing.accelerator.device
        part = {} if self._single else {"part": name}
        counted: Tensor | None = None
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            for own in mine:
                batch = batcher.collate(own or examples[:1]).to(device)
                with self.mixtures[name].routers.recording() as routes:
                    module(**batch.model_inputs(), probe="hidden", **part)
                new = assigned(routes, batch.multiplicity) * (1.0 if own else 0.0)
                counted = new if counted is None else counted + new
        assert counted is not None
        return summed(counted, self._sharing)


class RoutedStep:
    """The routes of one optimiser step, pass by pass. `known`: assignments (E,) of the whole step, by mixture, where
    they were counted before. `alone`: each process makes one pass."""

    def __init__(self, experts: Experts, over: Over, tokens: int, sharing: Strategy, alone: bool) -> None:
        self.known: dict[str, Tensor] = {}
        self._experts = experts
        self._over = over
        self._tokens = tokens
        self._sharing = sharing
        self._alone = alone
        self._loads: dict[str, Tensor] = {}
        self._losses: dict[str, Tensor] = {}
        self._replayed: dict[str, Tensor] = {}

    def loss(self, of_pass: Mapping[str, list[Routes]], batch: MicroBatch, share: float) -> Tensor | None:
        """The pass's part of the load-balancing losses times their coefficients, a scalar with gradient whose mean over
        the processes, summed over passes, is that of the step. `share`: 0 for a pass that counts nothing, otherwise 1.
        None where nothing is to be balanced. Also counts the loads of the pass."""
        total: Tensor | None = None
        for name, mixture in self._experts.mixtures.items():
            routes, weights = of_pass[name], batch.multiplicity * share
            if not routes or any(len(layer.logits) != len(weights) for layer in routes):
                continue
            self._add(self._loads, name, loads(routes, weights))
            for layer in routes:
                if layer.replayed is not None and layer.own is not None:
                    apart = differing(layer.own, layer.chosen, layer.replayed)
                    counted = torch.stack([apart, layer.replayed]).double() @ weights.double()
                    self._add(self._replayed, name, counted)
            if not mixture.coefficient:
                continue
            value = self._balance(name, routes, weights)
            self._add(self._losses, name, value.detach().double())
            scaled = value * (mixture.coefficient * self._sharing.accelerator.num_processes)
            total = scaled if total is None else total + scaled
        return total

    def figures(self) -> dict[str, float]:
        """Figures of the step, of all processes; those of other models than the main one begin with their names."""
        figures: dict[str, float] = {}
        for name, counts in self._loads.items():
            own = load_figures(summed(counts, self._sharing))
            if name in self._losses:
                own["router_aux_loss"] = float(summed(self._losses[name], self._sharing))
            if name in self._replayed:
                own["replayed_routes_differ"] = share_differing(summed(self._replayed[name], self._sharing).tolist())
            prefix = "" if name == JointModule.MAIN else f"{name}_"
            figures |= {f"{prefix}{figure}": value for figure, value in own.items()}
        return figures

    def _balance(self, name: str, routes: Sequence[Routes], weights: Tensor) -> Tensor:
        sums, layers = probabilities(routes, weights), len(routes)
        if self._over == "pass":
            # Each pass counts as much as it has tokens.
            own = float(weights.sum())
            return balance_loss(assigned(routes, weights), sums, max(1.0, own) * layers) * (own / self._tokens)
        counts = self.known.get(name)
        if counts is None:
            counts = assigned(routes, weights)
            counts = summed(counts, self._sharing) if self._alone else counts
        return balance_loss(counts, sums, self._tokens * layers)

    @staticmethod
    def _add(into: dict[str, Tensor], name: str, value: Tensor) -> None:
        into[name] = into[name] + value if name in into else value


def _check_has_routers(model: Any, mixture: Mixture | None, config: TrainingConfig) -> None:
    if mixture is None and config.freeze_router:
        lacks, name = "has no routers", "freeze_router"
    elif config.router_aux_loss and (mixture is None or not mixture.routers.gives_loss):
        lacks = "has no experts" if mixture is None else "balances its experts by no such loss"
        name = "router_aux_loss"
    else:
        return
    raise BadInput(f"{name} is set, and {type(model).__name__} {lacks}", code="no_router", hint=f"Leave {name} out.")


def _check_can_replay(model: Any, mixture: Mixture | None) -> None:
    if mixture is None:
        raise BadInput(
            f"router_replay is set, and {type(model).__name__} has no routers",
            code="no_router",
            hint="Leave router_replay out.",
        )
    if not mixture.routers.replays:
        known = ", ".join(sorted(name.removesuffix("TopKRouter") for name in GATES))
        raise BadInput(
            f"router_replay is set, and how {type(model).__name__} weighs the experts of a token is not known",
            code="routes_not_replayed",
            hint=f"Leave router_replay out, or train a model of one of these families: {known}.",
        )


def summed(values: Tensor, sharing: Strategy) -> Tensor:
    """The sum of a tensor over the processes."""
    if sharing.accelerator.num_processes == 1:
        return values
    gathered: Tensor = sharing.accelerator.gather(values[None])
    return gathered.sum(0)
