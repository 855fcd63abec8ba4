"""The memory estimate: parameters as the model has them, states as ZeRO splits them, activations as autograd saves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    PreTrainedModel,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from steerboard_contracts.lora import LoraConfig
from steerboard_contracts.methods import needed_method
from steerboard_contracts.planning.memory import (
    ModelShape,
    TrainingLoad,
    generation_memory,
    scoring_memory,
    training_memory,
)
from steerboard_contracts.planning.placement_plan import Machines, plan, training_load
from steerboard_workers.stages.models.adapters import add_lora
from steerboard_workers.stages.training.preflight import Way, _goes_together, smaller
from support.models.llama_shapes import LLAMA_8B, LLAMA_70B

GIB = 1 << 30
SHAPE_FIELDS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
SHAPE_FIELDS += ("intermediate_size", "vocab_size", "num_experts_per_tok")
# As Qwen publishes it.
QWEN3_30B_A3B = {
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "vocab_size": 151936,
    "tie_word_embeddings": False,
}
SCALING = Path(__file__).parents[3] / "docs" / "scaling.md"


def tiny(**changes) -> LlamaConfig:
    shape = {
        "hidden_size": 64,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 160,
        "vocab_size": 300,
    }
    return LlamaConfig(**{**shape, **changes})


@pytest.mark.parametrize("tied", [True, False])
def test_parameters_are_counted_as_the_model_has_them(tied):
    config = tiny(tie_word_embeddings=tied)
    expected = sum(p.numel() for p in LlamaForCausalLM(config).parameters())
    assert ModelShape.of(config.to_dict()).parameters == expected


@pytest.mark.parametrize("targets", ["linear", "attention"])
def test_adapters_are_counted_as_they_are_put_in(targets):
    config, lora = tiny(), LoraConfig(rank=3, targets=targets)
    model = LlamaForCausalLM(config)
    add_lora(model, lora, head=False, seed=0)
    learned = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert ModelShape.of(config.to_dict()).adapters(lora) == learned


def test_adapters_over_a_4_bit_base_need_a_fraction():
    shape = ModelShape.of(LLAMA_8B)
    load = TrainingLoad(positions=2048, mixed=True, gradient_checkpointing=True)
    adapted = load.model_copy(update={"trained": shape.adapters(LoraConfig())})
    quantised = adapted.model_copy(update={"quantised": True})
    whole, over_bf16, over_nf4 = (training_memory(shape, way).total / GIB for way in (load, adapted, quantised))
    assert over_nf4 < 9 < over_bf16 < 20 < 60 < whole


def test_a_frozen_base_stored_in_float32_is_held_in_it_and_as_autocast_rounds_it():
    shape = ModelShape.of(LLAMA_8B)
    load = TrainingLoad(positions=2048, mixed=True, trained=shape.adapters(LoraConfig()))
    weights = [training_memory(each, load).weights for each in (shape, shape.model_copy(update={"bf16": False}))]
    assert weights[1] - weights[0] == 4 * shape.parameters
    whole = load.model_copy(update={"trained": shape.parameters})
    assert training_memory(shape, whole) == training_memory(shape, load.model_copy(update={"trained": None}))
    exact = load.model_copy(update={"mixed": False})
    assert training_memory(shape, exact) == training_memory(shape.model_copy(update={"bf16": False}), exact)


def test_an_8b_llama_has_8_billion():
    assert ModelShape.of(LLAMA_8B).parameters == 8_030_261_248


def test_what_is_no_decoder_has_no_shape():
    assert ModelShape.of({"model_type": "resnet", "hidden_sizes": [1, 2]}) is None
    assert ModelShape.of({**LLAMA_8B, "num_attention_heads": 0}) is None


def saved_bytes(model: PreTrainedModel, tokens: int) -> int:
    """What autograd keeps for the backward pass, weights apart."""
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        hidden = model.model(input_ids=torch.arange(tokens)[None] % 300, use_cache=False).last_hidden_state
    assert hidden.requires_grad
    return sum(kept.values())


@pytest.mark.parametrize("layers", [2, 6])
def test_activations_are_about_what_autograd_saves(layers):
    config = tiny(num_hidden_layers=layers)
    measured = saved_bytes(LlamaForCausalLM(config).train(), 512)
    load = TrainingLoad(positions=512, mixed=False, on_gpu=False)
    assert training_memory(ModelShape.of(config.to_dict()), load).activations == pytest.approx(measured, rel=0.25)


def mixture(family: str, **changes) -> PreTrainedModel:
    """A tiny mixture with 12 experts a layer."""
    shape = {**tiny().to_dict(), "num_experts_per_tok": 3, **changes}
    shape = {name: shape[name] for name in (*SHAPE_FIELDS, *changes) if name in shape}
    torch.manual_seed(0)
    if family == "mixtral":
        return MixtralForCausalLM(MixtralConfig(**shape, num_local_experts=12))
    return Qwen3MoeForCausalLM(Qwen3MoeConfig(**shape, num_experts=12, moe_intermediate_size=48, head_dim=16))


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("mixtral", {}),
        ("mixtral", {"num_experts_per_tok": 1}),
        ("qwen3_moe", {}),
        ("qwen3_moe", {"mlp_only_layers": [1]}),
    ],
)
def test_all_experts_weigh_and_active_ones_compute(family, changes):
    model = mixture(family, **changes).train()
    shape = ModelShape.of(model.config.to_dict())
    assert shape.parameters == pytest.approx(sum(p.numel() for p in model.parameters()), rel=1e-3)
    load = TrainingLoad(positions=512, mixed=False, on_gpu=False)
    assert training_memory(shape, load).weights == shape.parameters * 4
    for layers in (2, 6):
        model = mixture(family, **changes, num_hidden_layers=layers).train()
        estimate = training_memory(ModelShape.of(model.config.to_dict()), load)
        assert estimate.activations == pytest.approx(saved_bytes(model, 512), rel=0.15)


@pytest.mark.parametrize("family", ["mixtral", "qwen3_moe"])
def test_adapters_of_experts_are_counted_and_so_is_what_they_are_added_to(family):
    for targets in ("attention", "linear", "experts"):
        model, lora = mixture(family), LoraConfig(rank=3, targets=targets)
        shape = ModelShape.of(model.config.to_dict())
        add_lora(model, lora, head=False, seed=0)
        assert shape.adapters(lora) == sum(p.numel() for p in model.parameters() if p.requires_grad)
    load = TrainingLoad(positions=64, mixed=False, on_gpu=False, adapts_experts=True)
    assert training_memory(shape, load).activations == pytest.approx(saved_bytes(model.train(), 64), rel=0.25)


def test_frozen_experts_are_held_in_bf16_unless_they_are_adapted_and_never_twice():
    shape = ModelShape.of({**QWEN3_30B_A3B, "dtype": "bfloat16"})
    experts = 48 * 128 * 3 * 2048 * 768
    load = TrainingLoad(positions=2048, mixed=True)
    assert training_memory(shape, load).weights == shape.parameters * 6 - experts * 2
    few = load.model_copy(update={"trained": 1000})
    frozen = training_memory(shape, few).weights
    assert frozen == shape.parameters * 2 + 6000
    adapted = training_memory(shape, few.model_copy(update={"adapts_experts": True})).weights
    assert adapted == frozen + 2 * experts


def test_a_30b_mixture_holds_30_billion_and_computes_with_3():
    shape = ModelShape.of(QWEN3_30B_A3B)
    assert shape.parameters == pytest.approx(30.53e9, rel=1e-3)
    dense = shape.model_copy(update={"experts": None, "intermediate": 8 * 768})
    load = TrainingLoad(positions=8192, mixed=False)
    assert training_memory(shape, load).activations < 2 * training_memory(dense, load).activations


def test_zero_splits_what_the_paper_says():
    """Table 1 of arXiv 1910.02054, with float32 accumulation of gradients: 2, 4 and 12 bytes a parameter."""
    shape = ModelShape.of(LLAMA_8B)
    load = TrainingLoad(positions=2048, mixed=True, processes=8)
    p = shape.parameters
    two = training_memory(shape, load.model_copy(update={"strategy": "zero2"}))
    three = training_memory(shape, load.model_copy(update={"strategy": "zero3"}))
    assert (two.weights, two.optimiser) == (2 * p, 12 * p // 8)
    assert three.weights < two.weights / 3
    assert three.optimiser == two.optimiser
    assert three.total < 80 * GIB < training_memory(shape, load).total


def test_offload_moves_states_to_the_host():
    shape = ModelShape.of(LLAMA_8B)
    load = TrainingLoad(positions=2048, mixed=True, strategy="zero3")
    at_home, away = (
        training_memory(shape, load.model_copy(update={"offload": offload})) for offload in ("none", "all")
    )
    assert away.optimiser == 0
    assert away.host == (12 + 4 + 2) * shape.parameters  # states, accumulated gradients, weights
    on_cpu = load.model_copy(update={"on_gpu": False})
    assert training_memory(shape, on_cpu.model_copy(update={"offload": "all"})) == training_memory(shape, on_cpu)
    assert away.total < at_home.total / 3


def test_a_key_value_cache_is_two_tensors_a_layer():
    estimate = generation_memory(ModelShape.of(LLAMA_8B), sequences=64, tokens=1024, mixed=True)
    assert estimate.kv_cache == 64 * 1024 * 32 * 2 * 8 * 128 * 2  # 128 KiB a token
    assert estimate.weights == 2 * 8_030_261_248


def test_sampling_in_training_counts_where_it_needs_more_than_the_step():
    shape = ModelShape.of(LLAMA_8B)
    step = TrainingLoad(positions=2048, mixed=True)
    few, many = (step.model_copy(update={"sampled": sampled, "window": 2048}) for sampled in (1, 64))
    assert training_memory(shape, few) == training_memory(shape, step)
    estimate = training_memory(shape, many)
    assert estimate.kv_cache == 64 * 2048 * 32 * 2 * 8 * 128 * 2
    assert estimate.total > training_memory(shape, step).total


def test_logits_are_a_chunk_and_its_gradient_and_on_a_gpu_a_float32_copy():
    shape = ModelShape.of(LLAMA_8B)
    load = TrainingLoad(positions=8192, mixed=True)
    assert training_memory(shape, load).logits == (1 << 26) * (2 + 2 + 4)
    assert training_memory(shape, load.model_copy(update={"on_gpu": False})).logits == (1 << 28) * (2 + 2)
    short = load.model_copy(update={"positions": 10, "mixed": False})
    assert training_memory(shape, short).logits == 10 * 128256 * (4 + 4 + 4)
    assert training_memory(shape, load.model_copy(update={"reads_logits": False})).logits == 0


def test_scoring_needs_weights_and_no_layer_but_one():
    shape = ModelShape.of(LLAMA_8B)
    estimate = scoring_memory(shape, positions=8192, mixed=True)
    assert estimate.weights == 2 * 8_030_261_248
    assert estimate.kv_cache == estimate.optimiser == estimate.gradients == estimate.logits == 0
    assert 0 < estimate.activations < training_memory(shape, TrainingLoad(positions=8192, mixed=True)).activations / 8


def test_smaller_ways_keep_the_cheapest_first_and_end():
    ways = list(smaller(Way(8192, False, "ddp", "none"), least=1500, processes=2))
    assert ways[:3] == [
        Way(4096, False, "ddp", "none"),
        Way(2048, False, "ddp", "none"),
        Way(1500, False, "ddp", "none"),
    ]
    assert ways[3] == Way(8192, True, "ddp", "none")
    assert [(way.strategy, way.offload) for way in ways[-4:]] == [
        ("zero2", "none"),
        ("zero3", "none"),
        ("zero2", "optimiser"),
        ("zero3", "all"),
    ]
    assert list(smaller(Way(100, True, "zero3", "all"), least=500, processes=1)) == []


def cells(first: str) -> list[float]:
    """Figures of the row of the scaling page that begins so."""
    (line,) = [line for line in SCALING.read_text().splitlines() if line.startswith(f"| {first}")]
    return [float(re.match(r"[0-9.]+", cell.strip()).group()) for cell in line.split("|")[2:-1]]


@pytest.mark.parametrize(("config", "processes", "row"), [(LLAMA_8B, 8, "8B Llama"), (LLAMA_70B, 32, "70B Llama")])
def test_the_scaling_page_shows_the_estimates(config, processes, row):
    shape = ModelShape.of(config)
    ways = [{"strategy": "ddp"}, {"strategy": "zero2"}, {"strategy": "zero3"}, {"strategy": "zero3", "offload": "all"}]
    ways += [{"strategy": "zero2", "trained": shape.parameters // 200}]
    loads = [
        TrainingLoad(processes=processes, positions=4096, mixed=True, gradient_checkpointing=True, **way)
        for way in ways
    ]
    assert [round(training_memory(shape, load).total / GIB) for load in loads] == cells(row)


@pytest.mark.parametrize(("config", "processes", "row"), [(LLAMA_8B, 8, "8B online"), (LLAMA_70B, 64, "70B online")])
def test_the_scaling_page_shows_the_estimates_of_sampling_in_training(config, processes, row):
    shape = ModelShape.of(config)
    common = TrainingLoad(processes=processes, positions=4096, mixed=True, gradient_checkpointing=True, frozen=2)
    ways = [{"further": further, "strategy": strategy} for further in (0, 1) for strategy in ("zero2", "zero3")]
    estimates = [training_memory(shape, common.model_copy(update={**way, "samples_apart": True})) for way in ways]
    assert [round(estimate.total / GIB) for estimate in estimates] == cells(row)
    # What the engines get passes through the host's memory.
    assert {estimate.host for estimate in estimates} == {2 * shape.parameters}


@pytest.mark.parametrize(
    ("method", "nodes", "engines"), [("grpo", 9, 1), ("grpo", 16, 4), ("ppo", 12, 2), ("ppo", 16, 4)]
)
def test_the_scaling_page_shows_the_plan_for_70b(method, nodes, engines):
    config = needed_method(method).config(
        method=method,
        strategy="zero3",
        gradient_checkpointing=True,
        engine="vllm",
        vllm={"tensor_parallel": 8},
        placement={"rollout": engines},
    )
    machines = Machines(nodes=nodes, devices=8, device_bytes=int(74.5 * GIB))
    planned = plan(config, ModelShape.of(LLAMA_70B), machines, {"model", "data", "reward"}, 4096)
    assert planned.fits
    training, engine = (role.needs for role in planned.roles)
    main = [training.weights, training.gradients, training.optimiser]
    sums = [*main, training.total - sum(main), training.total]
    row = next(
        line for line in SCALING.read_text().splitlines() if line.startswith(f"| {method.upper()}, {nodes} nodes")
    )
    assert f"{{rollout: {engines}}}" in row
    shown = [int(number) for number in re.findall(r"\d+", row.split("|", 3)[3])]
    assert shown == [round(size / GIB) for size in (*sums, engine.weights, engine.kv_cache)]


@pytest.mark.parametrize(("config", "column"), [(LLAMA_8B, 0), (LLAMA_70B, 1)])
def test_the_scaling_pages_hours_follow_from_its_assumptions(config, column):
    parameters, hour, tokens = ModelShape.of(config).parameters, 312e12 * 3600, 100_000 * 512
    train = 6 * parameters * tokens / (0.4 * hour)
    written = 33_333 * 256
    generate = 2 * parameters * written * (1 / 0.1 + 1 / 0.4) / hour
    label = 2 * parameters * tokens / (0.4 * hour)
    steps = {"SFT": train, "reward model": train, "generate 3": generate, "label": label, "Decision": train}
    for row, hours in [*steps.items(), ("total", sum(steps.values()))]:
        assert cells(row)[column] == pytest.approx(hours, rel=0.05), row


def test_a_critic_doubles_what_learns_and_a_frozen_model_adds_its_weights_where_it_is_given():
    shape = ModelShape.of(LLAMA_8B)
    alone = TrainingLoad(positions=2048, mixed=True)
    one, two = (training_memory(shape, alone.model_copy(update={"further": n})) for n in (0, 1))
    for name in ("weights", "gradients", "optimiser", "activations"):
        assert getattr(two, name) == 2 * getattr(one, name)
    spec = needed_method("ppo")
    config = spec.config(method="ppo")
    # The reference is always there, unless nothing asks for it; of the reward models, those that are given.
    assert spec.kept(config, {"model", "data", "reward"}) == 2
    assert spec.kept(config, {"model", "data"}) == 1
    assert spec.kept(config.model_copy(update={"kl_weight": 0.0}), {"reward", "reward_2"}) == 2


def test_a_frozen_model_is_counted_by_its_own_size_where_that_is_known():
    """A teacher is larger than its student; a size that is unknown is the student's."""
    shape, spec = ModelShape.of(LLAMA_8B), needed_method("distillation")
    config = spec.config(method="distillation", precision="bf16")
    given = {"model", "data", "teacher", "reward"}

    def weights(sizes: dict[str, int]) -> int:
        return training_memory(shape, training_load(config, shape, given, 2048, 1, True, sizes)).weights

    assert spec.kept_names(config, given) == ["teacher", "reward"]
    large = {"model": shape.parameters, "teacher": 70_000_000_000}
    assert weights(large) - weights({}) == 2 * (70_000_000_000 - shape.parameters)
    assert weights({**large, "reward": 1_000_000}) < weights(large)


@pytest.mark.parametrize(("divergence", "possible"), [("reverse_kl", False), ("sampled_reverse_kl", True)])
def test_no_strategy_is_proposed_that_the_method_refuses(divergence, possible):
    spec = needed_method("distillation")
    config = spec.config(method="distillation", divergence=divergence, engine="vllm")
    assert _goes_together(config, Way(2048, False, "zero3", "none")) == possible
    assert _goes_together(config, Way(2048, False, "zero2", "none"))
