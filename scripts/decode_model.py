"""A small model that decodes one token per step, batch 1, as an engine would: for captures, not for its answers.

Weights are random. Each step attends over a KV cache of fixed length, of which it overwrites one place, so that all
steps cost the same. The token is chosen on the device, and the host reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional


@dataclass(frozen=True)
class Sizes:
    """The model's sizes; ``context``: places of the KV cache."""

    layers: int
    hidden: int
    heads: int
    inner: int
    vocabulary: int
    context: int


FULL = Sizes(layers=14, hidden=2048, heads=16, inner=5632, vocabulary=32000, context=1024)
"""About 200 kernel launches a step and 1.6 GB of weights in bf16."""
TINY = Sizes(layers=2, hidden=64, heads=4, inner=128, vocabulary=256, context=32)


class Layer:
    """Attention and MLP of one layer."""

    def __init__(self, sizes: Sizes, make: Callable[..., torch.Tensor]) -> None:
        hidden, head = sizes.hidden, sizes.hidden // sizes.heads
        self.heads, self.head = sizes.heads, head
        self.qkv, self.out = make(3 * hidden, hidden), make(hidden, hidden)
        self.gate_up, self.down = make(2 * sizes.inner, hidden), make(hidden, sizes.inner)
        self.norms = make(hidden), make(hidden)
        self.keys, self.values = (make(1, sizes.heads, sizes.context, head) for _ in range(2))

    def __call__(self, state: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        """The state behind this layer, ``[1, hidden]``."""
        inner = functional.rms_norm(state, state.shape[-1:], self.norms[0])
        query, key, value = functional.linear(inner, self.qkv).view(3, 1, self.heads, 1, self.head).unbind(0)
        self.keys.index_copy_(2, place, key)
        self.values.index_copy_(2, place, value)
        seen = functional.scaled_dot_product_attention(query, self.keys, self.values)
        state = state + functional.linear(seen.reshape(1, -1), self.out)
        inner = functional.rms_norm(state, state.shape[-1:], self.norms[1])
        gate, up = functional.linear(inner, self.gate_up).chunk(2, dim=-1)
        return state + functional.linear(functional.silu(gate) * up, self.down)


class Decoder:
    """Decodes greedily. ``step`` does one step and returns the token, read by the host."""

    def __init__(self, sizes: Sizes, device: str, dtype: torch.dtype = torch.bfloat16) -> None:
        generator = torch.Generator(device).manual_seed(1)

        def make(*shape: int) -> torch.Tensor:
            noise = torch.randn(*shape, generator=generator, device=device, dtype=torch.float32)
            return (noise * 0.02 if len(shape) > 1 else 1 + 0.02 * noise).to(dtype)

        self.sizes = sizes
        self.embedding, self.head = (make(sizes.vocabulary, sizes.hidden) for _ in range(2))
        self.norm = make(sizes.hidden)
        self.layers = [Layer(sizes, make) for _ in range(sizes.layers)]
        self.token = torch.ones(1, dtype=torch.long, device=device)
        self.place = torch.zeros(1, dtype=torch.long, device=device)
        self._graph: torch.cuda.CUDAGraph | None = None

    def forward(self) -> None:
        """One step on the device: the next token takes the place of the last one."""
        state = functional.embedding(self.token, self.embedding)
        for layer in self.layers:
            state = layer(state, self.place)
        state = functional.rms_norm(state, state.shape[-1:], self.norm)
        logits = functional.linear(state, self.head)
        self.token.copy_(logits.argmax(dim=-1))
        self.place.add_(1).remainder_(self.sizes.context)

    def step(self) -> int:
        """One step; returns when the host has the token."""
        if self._graph is None:
            self.forward()
        else:
            self._graph.replay()
        return int(self.token.item())

    def settle(self, steps: int) -> None:
        """Steps after which libraries have made up their mind; with CUDA on a side stream, as capturing wants it."""
        if not torch.cuda.is_available():
            for _ in range(steps):
                self.step()
            return
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(steps):
                self.forward()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()

    def capture(self) -> None:
        """From now on a step is one launch of a CUDA graph. Capturing runs nothing, so the state stays as it is."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.forward()
        self._graph = graph

    def weights_bytes(self) -> int:
        """Bytes of weights that every step reads: all but the embedding, of which it reads one row."""
        tensors = [self.head, self.norm]
        for layer in self.layers:
            tensors += [layer.qkv, layer.out, layer.gate_up, layer.down, *layer.norms]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    def cache_bytes(self) -> int:
        """Bytes of the KV cache, which every step reads."""
        caches = [cache for layer in self.layers for cache in (layer.keys, layer.values)]
        return sum(cache.numel() * cache.element_size() for cache in caches)
