"""LoRA on the experts of a mixture, whose matrices transformers holds as one parameter of a layer: (E, out, in), or
(E, in, out). Peft wraps the module for each of these (`target_parameters`), and adds B A of every expert to its matrix
before a pass. An adapter of rank r has A (E r, in) and B (out, r E).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

EXPERTS = "experts"
_BELOW = "base_layer"
_NAME = "default"


@dataclass(frozen=True)
class ExpertAdapter:
    """An adapter of one parameter. `layer`: the module that wraps it; `parameter`: its name in the plain model, and
    `stored` in the adapted one. `swapped`: the parameter is (E, out, in)."""

    layer: str
    parameter: str
    stored: str
    experts: int
    scale: float
    swapped: bool

    def merged(self, weights: dict[str, Tensor]) -> Tensor:
        """W + scale B A of each expert, in float32."""
        a, b = (weights[f"{self.layer}.lora_{x}.{_NAME}.weight"].float() for x in "AB")
        a, b = a.reshape(self.experts, -1, a.shape[1]), b.reshape(b.shape[0], -1, self.experts)
        delta = torch.einsum("ore,eri->eoi", b, a) if self.swapped else torch.einsum("ore,eri->eio", b, a)
        return weights[self.stored].float() + self.scale * delta


def expert_parameters(model: nn.Module) -> list[str]:
    """Last names, such as `experts.down_proj`, of what `target_parameters` has to name. Empty without experts that
    are one parameter."""
    return sorted(
        {
            f"{EXPERTS}.{name}"
            for module in expert_modules(model)
            for name, parameter in module.named_parameters(recurse=False)
            if _dimensions(parameter) == 3
        }
    )


def expert_modules(model: nn.Module) -> list[nn.Module]:
    """The modules that hold the matrices of all experts of a layer."""
    return [
        module
        for name, module in model.named_modules()
        if plain_name(name).rpartition(".")[2] == EXPERTS
        and any(_dimensions(parameter) == 3 for parameter in module.parameters(recurse=False))
    ]


def expert_adapters(model: nn.Module) -> list[ExpertAdapter]:
    """The adapters of an adapted model's experts."""
    found = []
    for name, layer in wrappers(model):
        own = layer.parameter_name
        depth = sum(1 for other, _ in wrappers(model) if plain_name(other) == plain_name(name))
        stored = ".".join([plain_name(name), *[_BELOW] * depth, own])
        found.append(
            ExpertAdapter(
                layer=name,
                parameter=f"{plain_name(name)}.{own}",
                stored=stored,
                experts=layer.num_experts,
                scale=layer.scaling[_NAME],
                swapped=layer._did_swap_in_out_features,
            )
        )
    return found


def _dimensions(parameter: nn.Parameter) -> int:
    """The dimensions of the whole parameter: what ZeRO-3 has spread over processes is flat and empty here."""
    return len(getattr(parameter, "ds_shape", parameter.shape))


def wrappers(model: nn.Module) -> list[tuple[str, Any]]:
    """Peft's wrappers by name; those of one module are nested, the outermost first."""
    from peft.tuners.lora.layer import ParamWrapper

    return [(name, layer) for name, layer in model.named_modules() if isinstance(layer, ParamWrapper)]


def plain_name(name: str) -> str:
    """The name that a module or a tensor has without adapters."""
    return ".".join(part for part in name.split(".") if part != _BELOW)
