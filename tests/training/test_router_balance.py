"""The load-balancing loss of a mixture of experts: that of transformers, however the tokens of a step are laid out."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
import torch
from accelerate.state import AcceleratorState
from running import metrics_of, ran, run_ranks, weights_of
from torch.testing import assert_close
from transformers import AutoModelForCausalLM

from steerboard_contracts.errors import BadInput
from steerboard_workers.stages import train
from steerboard_workers.stages.training.opened import open_given
from support.models.mixtures import FAMILIES, mixture_of

ONE_STEP = {"run": "train", "method": "sft", "batch": 24, "max_steps": 1, "checkpoint_every": 0, "evaluate_every": 0}
COEFFICIENT = 0.3


@pytest.fixture(scope="module", params=FAMILIES)
def mixture(request, base_model, tmp_path_factory):
    return mixture_of(base_model, tmp_path_factory.mktemp(request.param) / "model", request.param)


class OneStep:
    """The first step of a run: what it learned from, its figures, and its gradients before they are clipped."""

    def __init__(self, stage, monkeypatch) -> None:
        AcceleratorState._reset_state(reset_partial_state=True)
        opened = open_given(stage)
        with ExitStack() as engines:
            trainer = train._prepare(stage, opened, engines).trainer
            self.examples = list(trainer._steps._source.batch(0).examples)
            self.passes = trainer.update._mine(self.examples)
            own = dict(opened.start.model.named_parameters())

            def keep(lr: float, held: object = ()) -> float:
                self.gradients = {name: p.grad.clone() for name, p in own.items() if p.grad is not None}
                return 1.0

            monkeypatch.setattr(opened.sharing, "step", keep)
            self.layout = trainer.update._batcher.layout
            self.figures, _ = trainer.update.make(self.examples, 0.0)


def by_transformers(folder, parts, total: float) -> tuple[float, dict[str, torch.Tensor]]:
    """The mean of `load_balancing_loss_func` over parts of padded sequences, by their tokens, and the gradients of all
    of the loss."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokens = sum(example.tokens for part in parts for example in part)
    balance = 0.0
    for part in parts:
        rows = [(list(e.prompt) + list(r), len(e.prompt)) for e in part for r in e.responses]
        width = max(len(ids) for ids, _ in rows)
        ids, labels, mask = (torch.full((len(rows), width), fill) for fill in (0, -100, 0))
        for place, (row, prompt) in enumerate(rows):
            ids[place, : len(row)] = torch.tensor(row)
            labels[place, prompt : len(row)] = torch.tensor(row[prompt:])
            mask[place, : len(row)] = 1
        output = model(input_ids=ids, attention_mask=mask, output_router_logits=True)
        picked = output.logits[:, :-1].log_softmax(-1).gather(2, labels[:, 1:, None].clamp(min=0)).squeeze(2)
        nll = -(picked * (labels[:, 1:] >= 0)).sum() / total
        share = float(mask.sum()) / tokens
        (nll + COEFFICIENT * share * output.aux_loss).backward()
        balance += share * output.aux_loss.item()
    return balance, {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


LAYOUTS = [
    {"batching": "padded", "micro_tokens": 100_000},
    {"batching": "padded", "micro_batch": 5},
    {"batching": "packed", "micro_batch": 7},
    {"batching": "padding_free", "micro_batch": 4},
    {"batching": "padding_free", "micro_batch": 6, "gradient_checkpointing": True},
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: "-".join(map(str, layout.values())))
def test_loss_and_gradients_are_those_of_transformers_for_the_whole_batch(make_stage, mixture, monkeypatch, layout):
    step = OneStep(make_stage({**ONE_STEP, **layout, "router_aux_loss": COEFFICIENT}, model=mixture), monkeypatch)
    assert step.layout == layout["batching"]
    assert (len(step.passes) > 1) == ("micro_batch" in layout)
    balance, gradients = by_transformers(mixture, [step.examples], sum(e.labels for e in step.examples))
    assert step.figures["router_aux_loss"] == pytest.approx(balance, rel=1e-5)
    assert balance > 2.05  # that of even loads is k = 2
    assert step.gradients.keys() == gradients.keys()
    for name, gradient in gradients.items():
        assert_close(
            step.gradients[name], gradient, rtol=1e-3, atol=2e-6, msg=lambda text, name=name: f"{name}: {text}"
        )


def test_over_each_pass_it_is_the_mean_of_transformers_losses_of_the_passes(make_stage, mixture, monkeypatch):
    config = {**ONE_STEP, "router_aux_loss": COEFFICIENT, "router_balance": "pass", "micro_batch": 5}
    step = OneStep(make_stage(config, model=mixture), monkeypatch)
    balance, gradients = by_transformers(mixture, step.passes, sum(e.labels for e in step.examples))
    whole, _ = by_transformers(mixture, [step.examples], 1.0)
    assert step.figures["router_aux_loss"] == pytest.approx(balance, rel=1e-5)
    assert abs(whole - balance) > 1e-3
    for name, gradient in gradients.items():
        assert_close(step.gradients[name], gradient, rtol=1e-3, atol=2e-6)


def test_a_prompt_that_two_answers_share_counts_for_both(make_stage, mixture, monkeypatch):
    """A plain pass has a copy of it for each answer."""
    config = {**ONE_STEP, "method": "simpo", "router_aux_loss": COEFFICIENT}
    steps = []
    for layout in ({"share_prompt": False, "batching": "padded"}, {"share_prompt": True, "batching": "padding_free"}):
        stage = make_stage({**config, **layout, "micro_batch": 4}, model=mixture, data="preferences")
        steps.append(OneStep(stage, monkeypatch))
    plain, shared = steps
    balance, _ = by_transformers(mixture, [plain.examples], 1.0)
    assert plain.figures["router_aux_loss"] == pytest.approx(balance, rel=1e-5)
    assert shared.figures["router_aux_loss"] == pytest.approx(balance, rel=1e-5)
    for name, gradient in plain.gradients.items():
        assert_close(shared.gradients[name], gradient, rtol=1e-3, atol=1e-5)


def test_by_default_it_counts_as_the_models_config_says(make_stage, mixture, monkeypatch):
    given = OneStep(make_stage({**ONE_STEP, "router_aux_loss": 0.001}, model=mixture), monkeypatch)
    default = OneStep(make_stage(ONE_STEP, model=mixture), monkeypatch)
    without = OneStep(make_stage({**ONE_STEP, "router_aux_loss": 0}, model=mixture), monkeypatch)
    router = next(name for name in default.gradients if name.endswith("mlp.gate.weight"))
    assert torch.equal(default.gradients[router], given.gradients[router])
    assert not torch.equal(default.gradients[router], without.gradients[router])
    assert "router_aux_loss" not in without.figures
    assert without.figures["experts_used"] == default.figures["experts_used"]


def test_the_loss_evens_out_what_experts_do(make_stage, mixture):
    run = {**ONE_STEP, "batch": 32, "epochs": 20, "max_steps": 40, "lr": 1e-2}
    even, uneven = (ran(make_stage({**run, "router_aux_loss": c}, model=mixture)) for c in (1.0, 0))
    assert even[40]["experts_used"] > uneven[40]["experts_used"]
    assert even[40]["router_aux_loss"] < even[1]["router_aux_loss"]
    assert even[40]["loss"] < even[1]["loss"]


def test_a_frozen_router_stays_as_it_is_while_the_experts_learn(make_stage, mixture):
    stage = make_stage({**ONE_STEP, "max_steps": 3, "lr": 1e-2, "freeze_router": True}, model=mixture)
    steps = ran(stage)
    assert all("router_aux_loss" not in values for values in steps.values())
    before = AutoModelForCausalLM.from_pretrained(mixture, dtype=torch.float32).state_dict()
    after = AutoModelForCausalLM.from_pretrained(stage.directory / "outputs" / "model", dtype=torch.float32)
    same = {name for name, weight in after.state_dict().items() if torch.equal(weight, before[name])}
    assert same == {name for name in before if name.endswith("mlp.gate.weight")}


@pytest.mark.parametrize("setting", [{"router_aux_loss": 0.1}, {"freeze_router": True}])
def test_a_model_without_experts_is_refused_what_is_for_routers(make_stage, base_model, setting):
    with pytest.raises(BadInput, match=f"{next(iter(setting))} is set, and LlamaForCausalLM has no") as refused:
        ran(make_stage({**ONE_STEP, **setting}, model=base_model))
    assert refused.value.code == "no_router"


def test_a_frozen_router_has_nothing_to_learn_from_a_loss():
    from steerboard_contracts.methods.sft import SftConfig

    with pytest.raises(ValueError, match="leave one out"):
        SftConfig(method="sft", router_aux_loss=0.1, freeze_router=True)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("strategy", ["ddp", "zero2", "zero3"])
def test_two_processes_balance_the_load_of_both(make_stage, wide_model, tmp_path, strategy, family):
    """Each has a part of the tokens, in several passes or in one."""
    model = mixture_of(wide_model, tmp_path / "model", family, intermediate_size=192)
    run = {**ONE_STEP, "max_steps": 3, "epochs": 4, "lr": 1e-2, "router_aux_loss": COEFFICIENT, "batching": "padded"}
    for cut in ({"micro_batch": 5}, {"micro_tokens": 100_000, "micro_batch": 12}):
        whole = make_stage({**run, "micro_tokens": 100_000}, model=model)
        expected = ran(whole)
        two = make_stage({**run, **cut, "strategy": strategy}, model=model)
        code, events, stderr = run_ranks(two)
        assert code == 0, stderr[-3000:]
        steps = metrics_of(events)
        for step, values in expected.items():
            for name in ("loss", "router_aux_loss", "experts_used", "expert_load_max", "grad_norm"):
                assert steps[step][name] == pytest.approx(values[name], rel=2e-3), (step, name)
        for name, tensor in weights_of(whole).items():
            assert_close(weights_of(two)[name], tensor, rtol=1e-3, atol=2e-4)
