"""Which layers of a model LoRA adapts, and what peft cannot adapt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from steerboard_contracts.errors import BadInput
from steerboard_contracts.lora import LoraConfig
from steerboard_workers.stages.models.expert_adapters import expert_parameters, wrappers

HEAD = "score"
ADAPTER = "default"


def peft_config(model: Any, lora: LoraConfig, head: bool, tokens: Sequence[int]) -> Any:
    from peft import LoraConfig as PeftConfig

    return PeftConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        use_rslora=lora.rslora,
        use_dora=lora.dora,
        target_modules=_targets(model, lora),
        target_parameters=_of_experts(model) if lora.targets == "experts" else None,
        modules_to_save=[HEAD] if head else None,
        trainable_token_indices={name: list(tokens) for name in _vocabularies(model)} if tokens else None,
        task_type="SEQ_CLS" if head else "CAUSAL_LM",
    )


def check(model: Any, lora: LoraConfig) -> None:
    """Raises `BadInput` (`no_lora_targets`) where adapters are not in all the layers that were asked for, or cannot be
    merged."""
    if lora.targets == "experts":
        _check_all_adapted(model)
    elif lora.merge:
        _check_no_expert(model)
    if lora.merge:
        check_merges(model)


def _vocabularies(model: Any) -> list[str]:
    """Names of the embeddings and of the LM head. Of two that are tied, peft trains the rows once."""
    ends = (model.get_input_embeddings(), model.get_output_embeddings())
    return [name for name, layer in model.named_modules() if any(layer is end for end in ends)]


def _targets(model: Any, lora: LoraConfig) -> list[str]:
    """Last names of the decoder's linear layers, or of those of its attention only."""
    wrapped = {name for name, _ in wrappers(model)}
    targets = {
        _last(name) for name, _ in lora_layers(model) if name not in wrapped
    }  # of adapters that are in it already
    if not targets:
        linear = (name for name, layer in model.base_model.named_modules() if _is_product(layer))
        targets = {_last(name) for name in linear if lora.targets != "attention" or _of_attention(name)}
    if not targets:
        raise _not_adaptable(model, "it has no linear layers")
    return sorted(targets)


def _of_experts(model: Any) -> list[str]:
    names = expert_parameters(model)
    if not names:
        raise _not_adaptable(model, "it has no experts whose weights are one parameter of a layer")
    return names


def _check_all_adapted(model: Any) -> None:
    """Raises `BadInput` for architectures where peft reads names of linear layers as those of experts, and leaves these
    layers out."""
    linear = (name for name, layer in model.base_model.named_modules() if _is_product(layer))
    left = next((name for name in linear if ".lora_" not in name and _last(name) != "base_layer"), None)
    if left is not None:
        raise _not_adaptable(model, f"peft adapts its experts in the place of {left}")


def _check_no_expert(model: Any) -> None:
    name = next((name for name, _ in wrappers(model)), None)
    if name is not None:
        raise _not_adaptable(model, f"{name} is not a linear layer, but all experts of one")


def check_merges(model: Any) -> None:
    """Raises `BadInput` (`no_lora_targets`) for a model with adapters that cannot be folded into its weights."""
    experts = {name for name, _ in wrappers(model)}
    layers = ((name, layer) for name, layer in lora_layers(model) if name not in experts)
    odd = next((name for name, layer in layers if not isinstance(layer.get_base_layer(), nn.Linear)), None)
    if odd is not None:
        raise _not_adaptable(model, f"{odd} is not a linear layer, so its adapter cannot be merged")


def _not_adaptable(model: Any, why: str) -> BadInput:
    return BadInput(
        f"LoRA cannot adapt {type(model).__name__}: {why}",
        code="no_lora_targets",
        hint="Train it without lora, or with lora.targets: attention.",
    )


def _is_product(layer: nn.Module) -> bool:
    """A linear layer, plain or quantised, but no router that an architecture derives from one and returns more from."""
    own = type(layer).__module__.startswith("transformers.models.") and type(layer).forward is not nn.Linear.forward
    return isinstance(layer, nn.Linear) and not own


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _of_attention(name: str) -> bool:
    return "att" in _last(name.rpartition(".")[0])


def inject(model: Any, config: Any) -> None:
    from peft import inject_adapter_in_model

    config.modules_to_save = None  # the head is trained in place; peft would keep a copy of it
    config.inference_mode = False
    try:
        inject_adapter_in_model(config, model, adapter_name=ADAPTER)
    except (ValueError, TypeError) as error:
        raise _not_adaptable(model, str(error).splitlines()[0][:300]) from error


def lora_layers(model: Any) -> list[tuple[str, Any]]:
    from peft.tuners.lora import LoraLayer

    return [(name, layer) for name, layer in model.named_modules() if isinstance(layer, LoraLayer)]
