"""Builds a module and a batcher from a model folder and a config, and checks them against each other."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import (
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
)

from steerboard_contracts.conditions.score_words import Writing
from steerboard_contracts.errors import BadInput
from steerboard_contracts.methods import needed_method
from steerboard_contracts.models import SCALARS, ModelInfo, ModelRole
from steerboard_contracts.specs.method import Trained
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.watching.warnings import experts_of
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.batches.layouts import Prober, attention_window, padding_cost, probe_of
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.modules import PolicyModule, RewardModule
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.stages.models.adapters import (
    add_lora,
    is_adapted,
    is_adapter,
    keep_bf16,
    leave_casts_to_autocast,
    load_weights,
    merge,
    quantisation,
)
from steerboard_workers.stages.models.model_io import (
    check_safe,
    distinct_pad,
    dtype_of_weights,
    expert_kernels,
    load_tokenizer,
    pick_dtype,
    read_info,
)
from steerboard_workers.stages.models.score_tokens import add_score_tokens, set_rows, token_ids
from steerboard_workers.stages.runtime import Stage

PAD = "<pad>"
CPU = torch.device("cpu")


@dataclass
class Setup:
    """`stored` is the dtype the weights came in and the final model is saved in. `scalar`: its head gives one number
    a sequence, a reward. `resized`: rows of the embeddings were added or set. `also`: of a model that is trained with
    another. `kept_bf16`: its frozen matrices are in bf16. `own_tokens`: rows of the embeddings and the head that LoRA
    trains."""

    model: Any
    tokenizer: Any
    renderer: Renderer
    info: ModelInfo
    stored: torch.dtype
    role: ModelRole
    scalar: bool
    resized: bool = False
    also: Trained | None = None
    kept_bf16: bool = False
    own_tokens: Sequence[int] = ()

    @property
    def parameters(self) -> int:
        return sum(_elements(p) for p in self.model.parameters())

    @property
    def trained(self) -> int:
        """Parameters that training changes."""
        return sum(_elements(p) for p in self.model.parameters() if p.requires_grad)

    @property
    def trained_names(self) -> set[str]:
        return {name for name, p in self.model.named_parameters() if p.requires_grad}

    @property
    def adapters(self) -> int:
        """Parameters of LoRA adapters."""
        return sum(_elements(p) for name, p in self.model.named_parameters() if is_adapted(name))

    @property
    def experts(self) -> int:
        """Routed experts of each mixture layer."""
        return experts_of(self.model.config.to_dict())

    @property
    def adapts_experts(self) -> bool:
        return any(is_adapted(name) and ".experts." in name for name, _ in self.model.named_parameters())

    def module(self, temperature: float = 1.0, entropies: bool = False) -> PolicyModule | RewardModule:
        self.model.get_input_embeddings().register_forward_hook(follow_autocast)
        if self.scalar:
            return RewardModule(self.model)
        module = PolicyModule(self.model)
        module.temperature = temperature
        module.entropies = entropies
        return module


def _elements(parameter: torch.nn.Parameter) -> int:
    """The elements of the whole parameter: ZeRO-3 leaves only a part of it here, and 4-bit ones are packed."""
    packed = getattr(parameter, "quant_state", None)
    return int(packed.shape.numel() if packed is not None else getattr(parameter, "ds_numel", parameter.numel()))


def follow_autocast(module: torch.nn.Module, inputs: Any, embedded: torch.Tensor) -> torch.Tensor:
    """Autocast lowers matrix products only. Embeddings (rows, T, width) in its dtype keep the residual stream and the
    rotary positions there too, as in a model loaded in bf16: 6% of a step on a CPU. Weights and their gradients stay
    in float32."""
    device = embedded.device.type
    return embedded.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else embedded


def open_model(
    folder: Path,
    config: TrainingConfig,
    dtype: torch.dtype = torch.float32,
    device: torch.device = CPU,
    also: Trained | None = None,
) -> Setup:
    """Load the start model in `dtype`, or that of a model that is trained with it; a reward model gets its head here,
    and LoRA its adapters.

    `device` is where a quantised base is put; others come to the CPU.
    """
    check_safe(folder)
    quantised = config.lora is not None and config.lora.quantise != "none"
    if is_adapter(folder) and (config.strategy == "zero3" or quantised):
        raise BadInput(
            f"{folder.name} is an adapter, which is merged before more is trained: neither zero3 nor quantise allow it",
            code="bad_config",
            hint="Use a merged model, strategy zero2, or no quantise.",
        )
    info = read_info(folder)
    tokenizer = training_tokenizer(folder, config) if also is None else load_tokenizer(folder)
    given = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    stored = getattr(given, "dtype", None) or dtype_of_weights(folder)
    vocabulary = given.get_text_config().vocab_size
    options: dict[str, Any] = {"dtype": dtype, "use_safetensors": True, "trust_remote_code": False}
    options |= expert_kernels(config)
    if config.lora is not None:
        options |= quantisation(config.lora, pick_dtype(config.precision, device), device)
    # A merged adapter's weights are no longer those that were stored.
    autocast = dtype is torch.float32 and pick_dtype(config.precision, device) is torch.bfloat16
    kept_bf16 = config.lora is not None and autocast and stored is torch.bfloat16 and not is_adapter(folder)
    spec = also or needed_method(config.method)
    scalar = spec.reads == "ends"
    if scalar:
        model = reward_model_from(folder, tokenizer, info, config.seed, options)
    else:
        model = load_weights(AutoModelForCausalLM, folder, **options)
    if is_adapter(folder):
        merge(model)
    writing = config.score_tokens if also is None else None
    begins = writing is not None and not _asked_alike(info, writing)
    if writing is not None and begins:
        set_rows(model, tokenizer, writing)
    own_tokens = token_ids(tokenizer, writing) if writing is not None and config.lora is not None else []
    if config.lora is not None:
        add_lora(model, config.lora, head=scalar, seed=config.seed, tokens=own_tokens)
        if autocast:
            leave_casts_to_autocast(model)
        if kept_bf16:
            keep_bf16(model)
    if config.gradient_checkpointing:
        checkpoint_activations(model)
    # A critic reads what the policy wrote, token by token; a reward model reads closed conversations.
    renderer = training_renderer(folder, tokenizer, info, config, model.config, whole=scalar and also is None)
    resized = begins or model.config.get_text_config().vocab_size != vocabulary
    described = info.model_copy(update={"template": renderer.template.name})
    return Setup(model, tokenizer, renderer, described, stored, spec.role, scalar, resized, also, kept_bf16, own_tokens)


def training_tokenizer(folder: Path, config: TrainingConfig) -> Any:
    """The start model's, with the tokens that training adds."""
    tokenizer = load_tokenizer(folder)
    if config.score_tokens is not None:
        add_score_tokens(tokenizer, config.score_tokens)
    return tokenizer


def _asked_alike(info: ModelInfo, writing: Writing) -> bool:
    """Whether the start model has these tokens for these words: what it learned of them stays."""
    if info.condition is None:
        return False
    own = info.condition.how
    return (own.style, own.words) == (writing.style, writing.words)


def training_renderer(
    folder: Path, tokenizer: Any, info: ModelInfo, config: TrainingConfig, of_model: Any, *, whole: bool
) -> Renderer:
    """What makes the tokens that are trained on. `of_model`: its transformers config. Raises `BadInput`
    (`no_chat_template`, `bad_config`)."""
    template = config.template or info.template
    if template == "chat" and not tokenizer.chat_template:
        raise BadInput(
            f"template chat needs a tokenizer with a chat template, and {folder.name} has none",
            code="no_chat_template",
            hint="Use template: plain.",
        )
    window = getattr(of_model, "max_position_embeddings", None) or info.max_length
    length = config.max_length or info.max_length
    if length > window:
        raise BadInput(f"max_length {length} is more than the {window} positions that the model has", code="bad_config")
    return Renderer(tokenizer, template, length, learn=config.learn, whole=whole)


def checkpoint_activations(model: Any) -> None:
    """Keep each layer's input only, and compute the rest again in the backward pass."""
    model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})


def reward_model_from(folder: Path, tokenizer: Any, info: ModelInfo, seed: int, options: dict[str, Any]) -> Any:
    """A classifier with one label on the policy's body.

    The new head is small, so that the first loss is ln 2 to three digits and its gradient still reaches the body.
    Padding gets a token of its own: other loaders find the last real token by it.

    Raises `BadInput` (`no_reward_head`) where transformers has no such head for the architecture.
    """
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    if type(config) not in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING:
        raise BadInput(
            f"transformers has no reward head for the architecture {config.model_type}",
            code="no_reward_head",
            hint="Start from a model of another architecture, or compare answers pairwise by a preference model.",
        )
    pad = distinct_pad(tokenizer)
    if pad is None:
        tokenizer.add_special_tokens({"pad_token": PAD})
    else:
        tokenizer.pad_token = pad
    model = load_weights(AutoModelForSequenceClassification, folder, num_labels=1, **options)
    if len(tokenizer) > model.get_input_embeddings().num_embeddings:
        model.resize_token_embeddings(len(tokenizer))
    model.config.pad_token_id = tokenizer.pad_token_id
    model.config.get_text_config().pad_token_id = tokenizer.pad_token_id
    if info.role not in SCALARS:
        _set_head(model.score.weight, seed)
    return model


@torch.no_grad()
def _set_head(weight: torch.nn.Parameter, seed: int) -> None:
    """The same values on every process; under ZeRO-3 each has only a part of `weight` (1, hidden)."""
    whole: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if hasattr(weight, "ds_id"):
        import deepspeed

        whole = deepspeed.zero.GatheredParameters([weight], modifier_rank=0)
    with whole:
        values = torch.randn(weight.shape, generator=torch.Generator().manual_seed(seed))
        weight.copy_(values / (weight.shape[-1] + 1))


def batcher_of(
    stage: Stage,
    config: TrainingConfig,
    module: PolicyModule | RewardModule,
    examples: list[Example],
    pad_id: int,
    device: torch.device,
    forward: Callable[..., Any] | None = None,
    share: bool = False,
) -> Batcher:
    """The fastest way of batching that gives the same numbers with this architecture; tried out once, here.

    `forward`: what wraps `module` for several processes, all of which come here. `share`: compute a prompt once for
    all responses to it, where that can be.
    """
    wanted = "padding_free" if config.batching == "auto" else config.batching
    longest = max(length for example in examples for length in example.lengths)
    window = attention_window(module.model)
    if window < longest and (share or wanted == "padding_free"):
        stage.log(
            f"rows have up to {longest} tokens, and attention sees {window:g} of them at most: plain padded batches, "
            "and the prompts are not shared"
        )
        share, wanted = False, "packed" if wanted == "packed" else "padded"
    plain = Batcher("padded", "ends" if isinstance(module, RewardModule) else "labels", config.micro_tokens, pad_id)
    dtype = pick_dtype(config.precision, device)
    plain = replace(plain, micro_batch=config.micro_batch, padding_cost=padding_cost(module.model, device, dtype))
    probe = probe_of(examples, share)
    mixed = dtype is torch.bfloat16
    prober = Prober(module, forward or module, plain, probe, device, mixed)
    was_training = module.training
    module.eval()
    try:
        if isinstance(module, PolicyModule) and not prober.head_agrees():
            stage.log("this architecture changes its logits after the LM head; its own full forward is used")
            module.whole_head = True
        for layout, shared in itertools.product(dict.fromkeys((wanted, "padded")), dict.fromkeys((share, False))):
            candidate = replace(plain, layout=layout, share=shared)
            if candidate == plain or prober.layout_agrees(candidate):
                return candidate
            what = "share prompts" if shared else "go without padding"
            stage.log(f"this architecture cannot {what} in its present attention implementation; doing without")
        return plain
    finally:
        module.train(was_training)
