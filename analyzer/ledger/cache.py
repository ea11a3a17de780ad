"""What attention and linear attention read and write beside weights: keys and values, latent vectors, states."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from analyzer.ledger.books import Books, Key
from analyzer.ledger.config import Latent, Linear, ModelConfig
from analyzer.ledger.dtypes import ARITHMETIC, BITS
from analyzer.ledger.model import Kind

_INDEXER_BLOCK = 128  # keys of sparse attention's indexer share a 4-byte scale per so many elements


@dataclass(frozen=True)
class CacheStep:
    """``sequences``: of one data replica, each with ``context`` tokens in the cache before the step."""

    sequences: int
    context: int
    cache_dtype: str
    state_dtype: str
    compute_dtype: str


class Cache:
    """Books the cache of the layers that have one."""

    def __init__(self, books: Books, model: ModelConfig, step: CacheStep) -> None:
        self.books = books
        self.model = model
        self.step = step

    def book(self, attention_layers: Iterable[int], linear_layers: Iterable[int]) -> None:
        """``attention_layers`` have a cache that grows, ``linear_layers`` a state of constant size."""
        for layer in attention_layers:
            if self.model.latent is None:
                self._keys_and_values(layer)
            else:
                self._latent(layer, self.model.latent)
        for layer in linear_layers:
            if self.model.linear is not None:
                self._state(layer, self.model.linear)

    def tokens_read(self, layer: int) -> int:
        """Of one sequence's cache, by attention in ``layer``. A window of n tokens holds the new one, too."""
        kind, window, context = self.model.layer_kinds[layer], self.model.window, self.step.context
        if window is None or kind in ("full", "other"):
            return context
        return context % window if kind == "chunked" else min(context, window - 1)

    def _keys_and_values(self, layer: int) -> None:
        model, step, group = self.model, self.step, self.books.layout.tensor
        heads = max(1, model.kv_heads // group)
        per_token = heads * (model.head_dim + model.value_head_dim)
        read = self.tokens_read(layer)
        flop = 2 * (model.heads // group) * (model.head_dim + model.value_head_dim) * read * step.sequences
        self._cache(layer, "keys and values", per_token, read, flop)

    def _latent(self, layer: int, latent: Latent) -> None:
        """Up-projections of keys and values are absorbed: scores and values are taken of the latent itself."""
        step = self.step
        per_token = latent.kv_lora_rank + latent.qk_rope_head_dim
        read = self.tokens_read(layer)
        if latent.index_topk is not None and latent.index_head_dim is not None:
            self._indexer(layer, latent.index_head_dim, latent.index_heads, read)
            read = min(read, latent.index_topk)
        heads = self.model.heads // self.books.layout.tensor
        flop = 2 * heads * (per_token + latent.kv_lora_rank) * read * step.sequences
        self._cache(layer, "latent vectors", per_token, read, flop)

    def _cache(self, layer: int, what: str, elements_per_token: int, read: int, flop: int) -> None:
        sequences, dtype = self.step.sequences, self.step.cache_dtype
        size = elements_per_token * BITS[dtype] / 8
        source = f"{elements_per_token} elements of {what} per token and layer on each rank"
        self._add(layer, "kv-cache", f"{what} read", dtype, sequences * read * size, source, flop)
        self._add(layer, "kv-cache", f"{what} written", dtype, sequences * size, source)

    def _indexer(self, layer: int, head_dim: int, heads: int | None, read: int) -> None:
        """Its keys are kept in FP8 with a scale per block, whatever the cache's type (as DeepSeek's kernels do).

        Every rank scores every token with all heads, in FP8; without their number the arithmetic is not told.
        """
        size = head_dim + 4 * -(-head_dim // _INDEXER_BLOCK)
        source = (
            f"{head_dim} FP8 elements and their scales per token and layer: the indexer looks at every token"
        )
        flop = None if heads is None else 2 * heads * head_dim * read * self.step.sequences
        self._add(
            layer,
            "kv-cache",
            "indexer keys read",
            "F8_E4M3",
            self.step.sequences * read * size,
            source,
            flop,
            "fp8",
        )
        self._add(layer, "kv-cache", "indexer keys written", "F8_E4M3", self.step.sequences * size, source)

    def _state(self, layer: int, linear: Linear) -> None:
        step, group = self.step, self.books.layout.tensor
        state = linear.value_heads // group * linear.key_head_dim * linear.value_head_dim
        channels = 2 * linear.key_heads * linear.key_head_dim + linear.value_heads * linear.value_head_dim
        window = channels // group * (linear.conv_kernel - 1)
        both = 2 * step.sequences  # read and written
        self._add(
            layer,
            "recurrent-state",
            "state of linear attention, read and written",
            step.state_dtype,
            both * state * BITS[step.state_dtype] / 8,
            f"{state} elements per sequence and layer on each rank",
            flop=None,
        )
        self._add(
            layer,
            "recurrent-state",
            "inputs of the short convolution, read and written",
            step.compute_dtype,
            both * window * BITS[step.compute_dtype] / 8,
            f"{window} elements per sequence and layer on each rank",
            flop=None,
        )

    def _add(
        self,
        layer: int,
        kind: Kind,
        name: str,
        dtype: str,
        size: float,
        source: str,
        flop: int | None = 0,
        arithmetic: str | None = None,
    ) -> None:
        """``arithmetic``: whose peak bounds it; None: that of the compute type."""
        key = Key(self.books.layout.stage_of(layer), "attention", kind, name, dtype)
        found = self.books.open(key, "model", source)
        for place in range(self.books.layout.ranks_per_stage):
            found.bytes[place] += size
            if found.flop is not None and flop:
                found.flop[place] += flop
        if flop is None:
            found.flop = None
        elif flop:
            found.flop_dtypes.add(arithmetic or ARITHMETIC.get(self.step.compute_dtype))
