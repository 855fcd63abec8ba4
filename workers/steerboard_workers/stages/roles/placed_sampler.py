"""Rollout engines apart, as the processes that train see them."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence

import torch

from steerboard_contracts.online_config import OnlineConfig
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.modules import PolicyModule
from steerboard_workers.phases import Phases
from steerboard_workers.stages.distributed.strategies import Strategy
from steerboard_workers.stages.roles.cluster import Cluster
from steerboard_workers.stages.roles.placed_unit import PendingCall, PlacedUnit
from steerboard_workers.stages.roles.rollout_unit import Sent, packed
from steerboard_workers.stages.training.sampling.live_policy import Drawing, ends_of
from steerboard_workers.stages.training.sampling.vllm_sampler import draw_of, fill, whole_weights
from steerboard_workers.stages.training.setup import Setup

_WEIGHTS = "weights"


class PlacedSampler:
    """The first process asks the engines for all answers; the others take part in gathering the weights. An engine that
    is lost gets the weights again and draws its answers once more, which are the same ones."""

    central = True

    def __init__(
        self,
        cluster: Cluster | None,
        config: OnlineConfig,
        start: Setup,
        module: PolicyModule,
        sharing: Strategy,
        phases: Phases,
    ) -> None:
        """`cluster`: of the first process, and of no other."""
        self._cluster = cluster
        self._config = config
        self._module = module
        self._sharing = sharing
        self._phases = phases
        self._dtype = torch.bfloat16 if sharing.mixed else torch.float32
        self._ends = sorted(ends_of(module, start.renderer))
        self._silent = start.renderer.silent_ids
        self._asked: list[tuple[Sequence[Drawing], PendingCall]] = []
        self._units: list[PlacedUnit] = [] if cluster is None else cluster.units("rollout")
        about = (module.model.config.to_dict(), start.renderer.max_length)
        with phases.measure("load"):
            for opened in [unit.ask("open", "rollout", *about, kept="open") for unit in self._units]:
                opened.answer()

    def take_weights(self) -> None:
        with self._phases.measure("sync"):
            weights = whole_weights(self._config, self._module, self._sharing)
            if self._cluster is None:
                deque(weights, maxlen=0)
                return
            for unit in self._units:
                unit.forget(_WEIGHTS)  # so that there is room for the new ones
            put = self._cluster.ray.put
            sent = [Sent(name, dtype, put(values)) for name, dtype, values in packed(weights, self._dtype)]
            for asked in [unit.ask("update", sent, kept=_WEIGHTS) for unit in self._units]:
                asked.answer()

    def begin(self, answers: Sequence[Drawing], prompts: Sequence[Example], temperature: float) -> None:
        """All answers to a prompt come from one engine, which reads the prompt once for them."""
        groups = [list(group) for _, group in itertools.groupby(answers, key=lambda answer: answer.prompt)]
        shares = [list(itertools.chain(*groups[at :: len(self._units)])) for at in range(len(self._units))]
        self._asked = [
            (share, unit.ask("draw", draw_of(share, prompts, temperature, self._ends, self._silent)))
            for unit, share in zip(self._units, shares, strict=True)
            if share
        ]

    def finish(self) -> None:
        for share, asked in self._asked:
            fill(share, asked.answer(), self._ends)
        self._asked = []
