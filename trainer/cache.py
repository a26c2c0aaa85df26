"""Keys and values of what a model has read, in buffers that are allocated once."""

from __future__ import annotations

import torch
from torch import Tensor


class Cache:
    """For every layer, keys and values of up to `capacity` positions.

    Shape suffixes: B documents, k key-value heads, T new positions, S all positions so far, d
    size of a head.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._layers: list[tuple[Tensor, Tensor]] = []
        self._used = 0

    def extend(self, layer: int, k_BkTd: Tensor, v_BkTd: Tensor) -> tuple[Tensor, Tensor]:
        """Put new keys and values behind the layer's others; views of all of them.

        `advance` must follow once all layers have been extended.
        """
        if layer == len(self._layers):
            shape = (*k_BkTd.shape[:2], self._capacity, k_BkTd.shape[-1])
            self._layers.append((k_BkTd.new_empty(shape), v_BkTd.new_empty(shape)))
        keys, values = self._layers[layer]
        end = self._used + k_BkTd.shape[2]
        keys[:, :, self._used : end] = k_BkTd
        values[:, :, self._used : end] = v_BkTd
        return keys[:, :, :end], values[:, :, :end]

    @property
    def layers(self) -> list[tuple[Tensor, Tensor]]:
        """Keys and values of every layer, B×k×capacity×d."""
        return self._layers

    def advance(self, positions: int) -> None:
        """Count positions that every layer has been extended by."""
        self._used += positions

    def keep(self, rows: Tensor) -> None:
        """Drop all documents but those at `rows`."""
        self._layers = [
            (torch.index_select(keys, 0, rows), torch.index_select(values, 0, rows))
            for keys, values in self._layers
        ]
