"""Weights by the names of a published checkpoint. Transformers holds the experts of a layer as one parameter, where a
file has the matrices of each; other engines read these only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor
from transformers.core_model_loading import revert_weight_conversion

from steerboard_workers.stages.models.expert_adapters import expert_parameters

Named = tuple[str, Tensor]


def by_checkpoint_name(model: Any, weights: Iterable[Named]) -> Iterable[Named]:
    """The tensors of `weights`, by their names in a plain `model`, as `save_pretrained` writes them: of a mixture each
    matrix of each expert, in views. One tensor is read at a time."""
    return _split(model, weights) if expert_parameters(model) else weights


def _split(model: Any, weights: Iterable[Named]) -> Iterator[Named]:
    for name, tensor in weights:
        yield from revert_weight_conversion(model, {name: tensor}).items()
