"""A key-value cache that is written in place and can drop finished rows."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer

# Room for this many further tokens is allocated at a time; concatenating at each step would copy all of it.
CHUNK = 64


class GrowingLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values (B, heads, T, d) as views into larger buffers, so that a step copies only its own token."""

    keys: Tensor
    values: Tensor
    _key_buffer: Tensor
    _value_buffer: Tensor

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self._key_buffer = key_states.new_empty(0)
            self._value_buffer = value_states.new_empty(0)
        length = self.get_seq_length()
        end = length + key_states.shape[-2]
        capacity = self._key_buffer.shape[-2] if self._key_buffer.dim() == 4 else 0
        if end > capacity:
            self._key_buffer = _enlarged(self.keys, key_states, length, end + CHUNK)
            self._value_buffer = _enlarged(self.values, value_states, length, end + CHUNK)
        self._key_buffer[:, :, length:end] = key_states
        self._value_buffer[:, :, length:end] = value_states
        self.keys = self._key_buffer[:, :, :end]
        self.values = self._value_buffer[:, :, :end]
        return self.keys, self.values

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keep, repeat or reorder rows; finished ones are dropped this way."""
        length = self.get_seq_length()
        self._key_buffer = self._key_buffer.index_select(0, beam_idx)
        self._value_buffer = self._value_buffer.index_select(0, beam_idx)
        self.keys = self._key_buffer[:, :, :length]
        self.values = self._value_buffer[:, :, :length]


def _enlarged(old: Tensor, new: Tensor, length: int, capacity: int) -> Tensor:
    # Zeros, not whatever the memory held: a NaN there would survive multiplication with a masked weight.
    batch, heads, _, size = new.shape
    buffer = new.new_zeros((batch, heads, capacity, size))
    if length:
        buffer[:, :, :length] = old
    return buffer


def growing_cache(config: Any) -> DynamicCache:
    """transformers' cache for this architecture, its plain attention layers replaced by growing ones.

    Sliding-window, linear and other layers keep transformers' own code.
    """
    cache = DynamicCache(config=config)
    cache.layers = [GrowingLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    if cache.layer_class_to_replicate is DynamicLayer:
        cache.layer_class_to_replicate = GrowingLayer
    return cache
