"""A key-value cache that is written in place, drops finished rows and takes new ones into their places."""

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
    _start = 0  # where the views begin

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append keys and values of new tokens (B, heads, t, d); all of them (B, heads, T + t, d)."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self._key_buffer = key_states.new_empty(0)
            self._value_buffer = value_states.new_empty(0)
        length = self.get_seq_length()
        capacity = self._key_buffer.shape[-2] if self._key_buffer.dim() == 4 else 0
        if self._start + length + key_states.shape[-2] > capacity:
            room = length + key_states.shape[-2] + CHUNK
            self._key_buffer = _enlarged(self.keys, key_states, length, room)
            self._value_buffer = _enlarged(self.values, value_states, length, room)
            self._start = 0
        end = self._start + length + key_states.shape[-2]
        self._key_buffer[:, :, self._start + length : end] = key_states
        self._value_buffer[:, :, self._start + length : end] = value_states
        self._view(self._start, end)
        return self.keys, self.values

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keep, repeat or reorder rows, by their indices (b,); finished ones are dropped this way."""
        end = self._start + self.get_seq_length()
        self._key_buffer = self._key_buffer.index_select(0, beam_idx)
        self._value_buffer = self._value_buffer.index_select(0, beam_idx)
        self._view(self._start, end)

    def replace_rows(self, rows: Tensor, by: GrowingLayer) -> None:
        """Put all rows of `by`, which may be shorter, in the place of `rows` (b,), with the same last token. What these
        rows had before that stays there, to be masked."""
        length = by.get_seq_length()
        self.keys[rows, :, -length:] = by.keys
        self.values[rows, :, -length:] = by.values

    def forget(self, tokens: int) -> None:
        """The first so many tokens of all rows."""
        self._view(self._start + tokens, self._start + self.get_seq_length())

    def _view(self, start: int, end: int) -> None:
        self._start = start
        self.keys = self._key_buffer[:, :, start:end]
        self.values = self._value_buffer[:, :, start:end]


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


def takes_rows(cache: DynamicCache) -> bool:
    """Whether rows can be replaced: a layer that keeps only a window of the tokens has another length than the rest."""
    lazily = not cache.layers and cache.layer_class_to_replicate is GrowingLayer
    return lazily or (bool(cache.layers) and all(type(layer) is GrowingLayer for layer in cache.layers))
