"""How much memory of a device a run will need, from its config and the model's shape, before anything is started.

The sums follow what the training stage keeps: AdamW's two float32 moments (arXiv 1412.6980), ZeRO's split of states
over processes (arXiv 1910.02054, section 5), and the activations that autograd saves of a decoder layer. They are an
estimate: the stage measures a step of the largest passes before it begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel

from steerboard_contracts.lora import LoraConfig
from steerboard_contracts.planning.experts import ExpertShape
from steerboard_contracts.training import Strategy

_FP32, _BF16 = 4, 2
# A parameter in NormalFloat with doubly quantised constants: 4.127 bits (arXiv 2305.14314, section 3).
_NF4 = 4.127 / 8
# The logits of one forward pass: a chunk and its gradient, see `alignment.head.CHUNK_ELEMENTS`.
_LOGITS_AT_ONCE, _LOGITS_AT_ONCE_ON_CPU = 1 << 26, 1 << 28
# ZeRO gathers gradients and weights in buckets of at most so many elements (DeepSpeed's defaults).
_BUCKET = 500_000_000
# Besides the sums: CUDA's context and libraries, or a process with torch and transformers imported and nothing done (on
# Linux; measured); and what the allocator loses between blocks.
_CONTEXT = 1 << 30
_PROCESS = 450 << 20
_LOSS = 0.05


class ModelShape(BaseModel):
    """The shape of a decoder. `parameters` counts tied ones once; `bf16`: they are stored in it. `experts`: of its
    mixture layers; its other layers are dense."""

    parameters: int
    hidden: int
    layers: int
    heads: int
    key_value_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    bf16: bool = False
    experts: ExpertShape | None = None

    @property
    def dense_layers(self) -> int:
        return self.layers - (self.experts.layers if self.experts is not None else 0)

    @property
    def widest(self) -> int:
        """The elements of a token at the widest place of a layer."""
        active = self.experts.active * self.experts.intermediate if self.experts is not None else 0
        return max(self.hidden, self.intermediate if self.dense_layers else 0, active)

    @classmethod
    def of(cls, config: Mapping[str, Any], parameters: int = 0) -> ModelShape | None:
        """The shape of a `config.json`; None unless it is a plain decoder's. Without `parameters` they are counted."""
        text = config.get("text_config")
        at: Mapping[str, Any] = text if isinstance(text, Mapping) else config
        try:
            hidden, layers, heads = (
                int(at[name]) for name in ("hidden_size", "num_hidden_layers", "num_attention_heads")
            )
            shape = cls(
                parameters=parameters,
                hidden=hidden,
                layers=layers,
                heads=heads,
                key_value_heads=int(at.get("num_key_value_heads") or heads),
                head_dim=int(at.get("head_dim") or hidden // heads),
                intermediate=int(at.get("intermediate_size") or 4 * hidden),
                vocabulary=int(at["vocab_size"]),
                experts=ExpertShape.of(at),
                bf16=any(where.get(name) == "bfloat16" for where in (config, at) for name in ("dtype", "torch_dtype")),
            )
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            return None
        if parameters:
            return shape
        tied = bool(at.get("tie_word_embeddings", config.get("tie_word_embeddings", True)))
        return shape.model_copy(update={"parameters": shape.counted(tied)})

    def adapters(self, lora: LoraConfig) -> int:
        """Parameters of LoRA adapters on the linear layers, and the experts if asked, of a Llama of this shape."""
        heads, groups = self.heads * self.head_dim, self.key_value_heads * self.head_dim
        sides = self.layers * (2 * (self.hidden + heads) + 2 * (self.hidden + groups))
        if lora.targets != "attention":
            sides += self.dense_layers * 3 * (self.hidden + self.intermediate)
            sides += self.experts.sides(self.hidden, each=lora.targets == "experts") if self.experts is not None else 0
        return lora.rank * sides

    def counted(self, tied: bool) -> int:
        """Parameters of a Llama, or a Mixtral, of this shape."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.key_value_heads)
        layers = self.layers * (attention + 2 * self.hidden) + self.dense_layers * 3 * self.hidden * self.intermediate
        layers += self.experts.parameters(self.hidden) if self.experts is not None else 0
        return layers + self.hidden + (1 if tied else 2) * self.vocabulary * self.hidden


class MemoryEstimate(BaseModel):
    """Bytes on one device; `host` bytes of the machine's memory for each process as well."""

    weights: int = 0
    gradients: int = 0
    optimiser: int = 0
    activations: int = 0
    logits: int = 0
    kv_cache: int = 0
    overhead: int = 0
    host: int = 0

    @property
    def total(self) -> int:
        return sum(getattr(self, name) for name in type(self).model_fields if name != "host")


class TrainingLoad(BaseModel):
    """What decides a training step's memory. `positions`: tokens of one forward pass, padding included. `sampled`:
    answers that are sampled together from the weights in training, each `window` tokens long with its prompt."""

    processes: int = 1
    positions: int
    mixed: bool
    strategy: Strategy = "ddp"
    offload: Literal["none", "optimiser", "all"] = "none"
    gradient_checkpointing: bool = False
    trained: int | None = None  # parameters that learn; None: all
    quantised: bool = False  # the others are held in 4 bits
    adapts_experts: bool = False  # by LoRA
    on_gpu: bool = True
    reads_logits: bool = True
    further: int = 0  # other models of the same shape that learn in the same steps
    frozen: int = 0  # others of which only the weights are loaded
    frozen_beyond: int = 0  # parameters that these have together beyond as many models of the same shape
    sampled: int = 0
    window: int = 0
    samples_apart: bool = False  # by an engine that gets the weights through the host's memory


def training_memory(shape: ModelShape, load: TrainingLoad) -> MemoryEstimate:
    """The memory of one training process."""
    every, learn, n = shape.parameters, load.trained or shape.parameters, load.processes
    estimate = MemoryEstimate(
        activations=_activations(shape, load),
        logits=_logits(shape, load) if load.reads_logits else 0,
    )
    if load.strategy == "ddp":
        # Autocast keeps a bf16 copy of each matrix for the length of a step. What it would only round back stays bf16.
        each = _FP32 + (_BF16 if load.mixed else 0)
        frozen = _BF16 if load.mixed and shape.bf16 else each
        # Experts have no copy: grouped products take weights as they are.
        experts = shape.experts.layers * shape.experts.matrices(shape.hidden) if shape.experts is not None else 0
        plain, of_experts = every - experts, experts * _expert_width(shape, load)
        estimate.weights = (plain * each if learn >= every else plain * frozen + learn * each) + of_experts
        if load.quantised:
            # Linear layers in 4 bits with their constants; the embeddings and the experts stay as they are.
            rest = shape.vocabulary * shape.hidden
            estimate.weights = int((plain - rest) * _NF4) + rest * frozen + learn * each + of_experts
        estimate.gradients = learn * _FP32 * (2 if n > 1 else 1)  # DDP's buckets hold them a second time
        estimate.optimiser = learn * 2 * _FP32
    else:
        width = _BF16 if load.mixed else _FP32
        bucket = min(_BUCKET, learn) * width
        estimate.weights = every * width
        if load.strategy == "zero3":
            layer = (every - shape.vocabulary * shape.hidden) // max(1, shape.layers)
            estimate.weights = every * width // n + 2 * max(layer, shape.vocabulary * shape.hidden) * width
        estimate.gradients = learn * _FP32 // n + bucket
        estimate.optimiser = learn * 3 * _FP32 // n
        # Without a GPU it would go from the host's memory to the host's memory.
        offload = load.offload if load.on_gpu else "none"
        if offload != "none":
            estimate.host = estimate.optimiser + learn * _FP32 // n
            estimate.optimiser, estimate.gradients = 0, bucket
        if offload == "all":
            estimate.host += every * width // n
            estimate.weights -= every * width // n
    for name in ("weights", "gradients", "optimiser", "activations", "host"):
        setattr(estimate, name, getattr(estimate, name) * (1 + load.further))
    width = _BF16 if load.mixed else _FP32
    others = load.frozen * every + load.frozen_beyond
    estimate.weights += others * width // (n if load.strategy == "zero3" else 1)
    estimate.host += every * width if load.samples_apart else 0
    # One after the other: a step samples first, then it learns.
    sampling = _decoding(shape, load.sampled, load.window, load.mixed)
    if sampling.total > estimate.activations + estimate.logits:
        estimate.activations, estimate.logits, estimate.kv_cache = (
            sampling.activations,
            sampling.logits,
            sampling.kv_cache,
        )
    estimate.overhead = _overhead(estimate, load.on_gpu)
    return estimate


def generation_memory(
    shape: ModelShape, *, sequences: int, tokens: int, mixed: bool, on_gpu: bool = True
) -> MemoryEstimate:
    """The memory of decoding `sequences` together, each `tokens` long with its prompt."""
    estimate = _decoding(shape, sequences, tokens, mixed)
    estimate.weights = shape.parameters * (_BF16 if mixed else _FP32)
    estimate.overhead = _overhead(estimate, on_gpu)
    return estimate


def _decoding(shape: ModelShape, sequences: int, tokens: int, mixed: bool) -> MemoryEstimate:
    """The memory of decoding, in addition to the weights."""
    width = _BF16 if mixed else _FP32
    return MemoryEstimate(
        kv_cache=cache_bytes(shape, sequences * tokens, mixed),
        logits=2 * sequences * shape.vocabulary * _FP32,
        activations=4 * sequences * tokens * shape.widest * width,
    )


def cache_bytes(shape: ModelShape, tokens: int, mixed: bool) -> int:
    """The bytes of the keys and values of so many tokens."""
    return 2 * shape.layers * shape.key_value_heads * shape.head_dim * tokens * (_BF16 if mixed else _FP32)


def scoring_memory(shape: ModelShape, *, positions: int, mixed: bool, on_gpu: bool = True) -> MemoryEstimate:
    """The memory of a reward model's forward pass over `positions` tokens."""
    width = _BF16 if mixed else _FP32
    estimate = MemoryEstimate(
        weights=shape.parameters * width,
        activations=4 * positions * shape.widest * width,
    )
    estimate.overhead = _overhead(estimate, on_gpu)
    return estimate


def _activations(shape: ModelShape, load: TrainingLoad) -> int:
    """What autograd saves: inputs of norms and matrices, queries and keys before and after their rotation, both sides
    of the gated product, which a token has of its active experts only; norms compute in float32. With checkpointing:
    every layer's input, and one layer's all."""
    width = _BF16 if load.mixed else _FP32
    heads, groups = shape.heads * shape.head_dim, shape.key_value_heads * shape.head_dim
    attention = (4 * shape.hidden + 3 * heads + 3 * groups) * width + 4 * shape.hidden * _FP32
    dense, mixture, adapted = 4 * shape.intermediate * width, 0, 0
    if shape.experts is not None:
        of_experts = _expert_width(shape, load)
        mixture = shape.experts.saved(shape.hidden, of_experts, width)
        # Peft adds each layer's updates to all of its experts, and the sum is kept for the backward pass.
        adapted = shape.experts.matrices(shape.hidden) * of_experts if load.adapts_experts else 0
    if load.gradient_checkpointing:
        largest = max(dense if shape.dense_layers else 0, mixture)
        return load.positions * (shape.layers * shape.hidden * width + attention + largest) + adapted
    mixtures = shape.layers - shape.dense_layers
    each = shape.layers * attention + shape.dense_layers * dense + mixtures * mixture
    return load.positions * each + mixtures * adapted


def _expert_width(shape: ModelShape, load: TrainingLoad) -> int:
    """Bytes of an element of the experts, in which they compute, too. Autocast leaves float32 as it is; a frozen base
    that was stored in bf16 stays in it, unless adapters are added to its experts."""
    if not load.mixed:
        return _FP32
    kept = load.trained is not None and load.trained < shape.parameters and shape.bf16 and not load.adapts_experts
    return _BF16 if load.strategy != "ddp" or kept else _FP32


def _logits(shape: ModelShape, load: TrainingLoad) -> int:
    """The bytes of the logits and, on a GPU, of a float32 copy, which a CPU makes of a few rows at a time."""
    elements = min(load.positions * shape.vocabulary, _LOGITS_AT_ONCE if load.on_gpu else _LOGITS_AT_ONCE_ON_CPU)
    return elements * (2 * (_BF16 if load.mixed else _FP32) + (_FP32 if load.on_gpu else 0))


def _overhead(estimate: MemoryEstimate, on_gpu: bool) -> int:
    return int(_LOSS * estimate.total) + (_CONTEXT if on_gpu else _PROCESS)
