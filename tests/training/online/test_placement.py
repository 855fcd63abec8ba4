"""Which node does what, from a placement and the devices of a worker; and what each device would hold."""

from __future__ import annotations

import uuid
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from steerboard.runs.tables import Run
from steerboard_contracts.errors import BadInput
from steerboard_contracts.methods import needed_method
from steerboard_contracts.placement import NodeShare, Placement, Unit, assign
from steerboard_contracts.planning.memory import ModelShape
from steerboard_contracts.planning.placement_plan import Machines, plan
from steerboard_workers.supervisor.device_group import DeviceGroup
from support.models.llama_shapes import LLAMA_8B, LLAMA_70B

GIB = 1 << 30
GPUS = ["0", "1", "2", "3"]


def grpo(**fields):
    return needed_method("grpo").config.model_validate({"method": "grpo", **fields})


def run_of(**fields) -> Run:
    return Run(id=uuid.UUID(int=1), kind="train", config=grpo(**fields).model_dump(mode="json"))


class TestAssign:
    @given(
        rollout=st.integers(0, 9),
        wide=st.sampled_from([1, 2, 4, 8]),
        rewards=st.integers(0, 5),
        reference=st.integers(0, 5),
        nodes=st.integers(1, 5),
        devices=st.integers(0, 8),
    )
    def test_every_unit_has_its_devices_on_one_node_and_the_first_node_trains(
        self, rollout, wide, rewards, reference, nodes, devices
    ):
        units = Placement(rollout=rollout, rewards=rewards, reference=reference).units(wide)
        try:
            shares = assign(units, nodes, devices)
        except BadInput:
            # Units as wide as this leave less than one of them free on any node.
            assert sum(unit.devices for unit in units) > nodes * devices - 1 - nodes * (wide - 1)
            return
        assert sorted(unit.name for share in shares for unit in share.units) == sorted(unit.name for unit in units)
        assert len(shares) == nodes
        training = [share.training for share in shares]
        assert training[0] >= 1
        # Processes that train are the first ones, as torchrun counts them.
        assert [bool(count) for count in training] == sorted((bool(count) for count in training), reverse=True)
        if devices:
            for share in shares:
                assert share.training + sum(unit.devices for unit in share.units) == devices

    def test_processors_of_the_last_nodes_help(self):
        units = Placement(rollout=1, rewards=1).units()
        one, two = Unit(role="rollout", number=0), Unit(role="rewards", number=0)
        assert assign(units, 1, 0) == [NodeShare(training=1, units=(one, two))]
        assert assign(units, 2, 0) == [NodeShare(training=1), NodeShare(training=0, units=(one, two))]
        assert [share.training for share in assign(units, 4, 0)] == [1, 1, 0, 0]

    def test_what_has_no_room_is_refused_with_its_sum(self):
        with pytest.raises(BadInput, match=r"takes 9 devices \(rollout 1 x 8, rewards 1 x 1\).*1 x 8") as refused:
            assign(Placement(rollout=1, rewards=1).units(8), 1, 8)
        assert refused.value.code == "placement_does_not_fit"
        assert refused.value.hint


class TestConfig:
    def test_colocated_is_a_name_for_nothing_apart(self):
        assert grpo(placement="colocated").placement == Placement()
        assert not grpo().placement.apart
        with pytest.raises(ValidationError):
            grpo(placement="apart")
        with pytest.raises(ValidationError):
            grpo(placement={"rollout": -1})

    @pytest.mark.parametrize(
        "fields",
        [{"strategy": "zero3"}, {"staleness": 1, "sampler_weight_cap": 2}],
        ids=lambda fields: next(iter(fields)),
    )
    def test_engines_apart_allow_what_sampling_by_the_model_in_training_does_not(self, fields):
        with pytest.raises(ValidationError, match=r"placement\.rollout"):
            grpo(**fields)
        assert grpo(**fields, placement={"rollout": 1}).samples_apart

    @pytest.mark.parametrize(
        ("method", "fields", "given", "unused"),
        [
            ("grpo", {}, {"reward"}, None),
            ("grpo", {"placement": {"rollout": 1, "rewards": 1}}, {"reward"}, None),
            ("grpo", {"placement": {"rewards": 1}}, {"model", "data"}, "rewards"),
            ("grpo", {"placement": {"reference": 1}, "kl_weight": 0.1}, set(), None),
            ("grpo", {"placement": {"reference": 2, "rewards": 1}, "kl_weight": 0}, set(), "rewards and reference"),
            ("online_dpo", {"placement": {"reference": 1}}, set(), None),
        ],
    )
    def test_a_role_without_a_model_gets_no_devices(self, method, fields, given, unused):
        spec = needed_method(method)
        fault = spec.placement_fault(spec.config.model_validate({"method": method, **fields}), given)
        assert fault == unused or fault.startswith(f"{unused} would get dedicated devices")

    def test_adapters_whose_base_is_spread_cannot_be_sent(self):
        with pytest.raises(ValidationError, match="lora with strategy zero3 cannot be merged"):
            grpo(placement={"rollout": 1}, strategy="zero3", lora={"rank": 4})

    def test_weights_in_4_bits_cannot_be_sent(self):
        with pytest.raises(ValidationError, match="no whole weights to give"):
            grpo(placement={"rollout": 1}, lora={"rank": 4, "quantise": "nf4"})


class TestDevices:
    def test_a_worker_without_roles_apart_trains_on_all_of_its_devices(self):
        group = DeviceGroup(GPUS)
        assert group.roles(grpo()) is None
        assert "--nproc-per-node=4" in group.launcher(run_of(), 1)

    def test_units_get_the_last_devices(self):
        group = DeviceGroup(GPUS)
        placement = {"rollout": 1, "reference": 1}
        roles = group.roles(grpo(placement=placement))
        assert (roles.nodes[0].training, roles.devices, roles.address) == (2, ["2", "3"], "")
        assert "--nproc-per-node=2" in group.launcher(run_of(placement=placement), 1)
        # With one device left there is one process, as without others.
        assert group.launcher(run_of(placement={"rollout": 3}), 1) == []

    def test_a_node_whose_devices_are_all_of_units_does_not_train(self):
        placement, tensor_parallel = {"rollout": 1}, {"engine": "vllm", "vllm": {"tensor_parallel": 4}}
        run = run_of(placement=placement, **tensor_parallel)
        first, last = (DeviceGroup(GPUS, 2, node, "host:7000") for node in (0, 1))
        assert first.trains(run)
        assert not last.trains(run)
        launcher = first.launcher(run, 1)
        assert "--standalone" in launcher
        assert "--nproc-per-node=4" in launcher
        roles = last.roles(grpo(placement=placement, **tensor_parallel))
        assert (roles.devices, roles.address, roles.node) == (GPUS, "host:7001", 1)

    @pytest.mark.parametrize(
        ("devices", "fields"),
        [(["0", "1"], {"placement": {"rollout": 2}}), ([], {"placement": {"rollout": 1}, "strategy": "zero3"})],
        ids=["GPUs", "processors"],
    )
    def test_a_node_with_units_only_starts_no_process_that_trains(self, devices, fields):
        run = run_of(**fields)
        first, last = (DeviceGroup(devices, 2, node, "host:7000") for node in (0, 1))
        assert "--standalone" in first.launcher(run, 1)
        assert not last.trains(run)
        assert last.launcher(run, 1) == []


class TestPlan:
    ONLINE: ClassVar = {"gradient_checkpointing": True, "engine": "vllm", "strategy": "zero3"}

    def planned(self, shape, nodes, **fields):
        machines = Machines(nodes=nodes, devices=8, device_bytes=int(74.5 * GIB))
        return plan(grpo(**fields), ModelShape.of(shape), machines, {"model", "data", "reward"}, 4096)

    def test_an_engine_on_the_same_device_takes_what_training_leaves(self):
        placed = self.planned(LLAMA_8B, 1, **self.ONLINE)
        assert placed.fits
        training, engine = placed.roles
        resting = training.needs.total - training.needs.activations - training.needs.logits
        assert 0 <= int(74.5 * GIB) - resting - engine.needs.total < 2 * GIB
        assert 0.4 < engine.needs.total / (74.5 * GIB) < 0.9
        less = self.planned(LLAMA_8B, 1, **self.ONLINE, vllm={"memory_fraction": 0.4}).roles[1]
        assert less.needs.total == pytest.approx(0.4 * 74.5 * GIB, rel=1e-3)

    def test_while_it_learns_it_leaves_room_for_a_step_too(self):
        waits, meanwhile = (
            self.planned(LLAMA_8B, 1, **self.ONLINE, staleness=staleness, sampler_weight_cap=2).roles
            for staleness in (0, 1)
        )
        step = meanwhile[0].needs.activations + meanwhile[0].needs.logits
        assert step > 0
        assert waits[1].needs.total - meanwhile[1].needs.total == pytest.approx(step, rel=1e-3)

    def test_70b_needs_an_engine_over_several_devices_of_its_own(self):
        colocated = self.planned(LLAMA_70B, 8, **self.ONLINE)
        (training, engine) = colocated.roles
        assert training.fits
        assert not engine.fits
        fields = {**self.ONLINE, "vllm": {"tensor_parallel": 8}}
        assert "devices of its own" in self.planned(LLAMA_70B, 8, **fields).problem
        placed = self.planned(LLAMA_70B, 8, **fields, placement={"rollout": 1})
        assert placed.fits
        assert [(role.role, role.devices) for role in placed.roles] == [("training", 56), ("rollout", 8)]
        assert placed.host == 2 * ModelShape.of(LLAMA_70B).parameters

    def test_what_is_proposed_fits(self):
        placed = self.planned(LLAMA_70B, 4)
        assert not placed.fits
        changes = dict(placed.changes)
        nodes = changes.pop("nodes", 4)
        fields: dict = {}
        for name, value in changes.items():
            *parents, last = name.split(".")
            into = fields
            for part in parents:
                into = into.setdefault(part, {})
            into[last] = value
        assert self.planned(LLAMA_70B, nodes, **fields).fits

    def test_a_reference_of_its_own_is_no_longer_with_those_that_train(self):
        with_all = self.planned(LLAMA_8B, 1, **self.ONLINE).roles[0].needs
        apart = self.planned(LLAMA_8B, 1, **self.ONLINE, placement={"reference": 1, "rewards": 1})
        assert {role.role: role.devices for role in apart.roles} == {
            "training": 6,
            "rollout": 6,
            "rewards": 1,
            "reference": 1,
        }
        spread = 2 * 2 * ModelShape.of(LLAMA_8B).parameters
        assert with_all.weights - apart.roles[0].needs.weights < spread / 8
        assert apart.roles[3].needs.weights == 2 * ModelShape.of(LLAMA_8B).parameters

    def test_more_devices_than_there_are_is_a_problem_with_a_way_out(self):
        placed = self.planned(LLAMA_8B, 1, **self.ONLINE, placement={"rollout": 8})
        assert "1 x 8 have no room" in placed.problem
        assert placed.changes
