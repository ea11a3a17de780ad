"""Weights that a decode step reads, rank by rank, with the arithmetic and the inputs and outputs of their products."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from analyzer.ledger.books import Books, Key, Sum
from analyzer.ledger.config import ModelConfig
from analyzer.ledger.dtypes import BITS, FLOATS, arithmetic_bits
from analyzer.ledger.inventory import Form, Inventory, Item
from analyzer.ledger.layout import Parallel
from analyzer.ledger.model import Kind
from analyzer.ledger.names import UNQUANTIZED, Rule, What, what_of
from analyzer.ledger.quantization import arithmetic_of
from analyzer.ledger.routing import Routing
from analyzer.ledger.shares import Share, share

ACTIVATIONS = "inputs and outputs of matrix products"
ACTIVATIONS_SOURCE = "each product reads its input once (shared ones once in all) and writes its output once"


@dataclass(frozen=True)
class Step:
    """What the weights are read for. ``tokens``: of one data replica; ``weights_dtype``: what plain weights load as."""

    tokens: int
    compute_dtype: str
    weights_dtype: str | None
    activations: bool
    embedding_split: bool


@dataclass
class _Held:
    """Experts of one form that a share of the ranks holds: how many, and what a step does with them."""

    example: Item
    count: int = 0
    touched: float = 0.0
    tokens: float = 0.0


class Weights:
    """Books the tensors of an inventory."""

    def __init__(self, books: Books, model: ModelConfig, step: Step) -> None:
        self.books = books
        self.layout: Parallel = books.layout
        self.model = model
        self.step = step
        self.unknown_arithmetic: list[str] = []
        self._shares: dict[tuple[Form, int], tuple[Share, ...]] = {}

    def book(self, inventory: Inventory, routing: Routing | None) -> None:
        """Everything that the step reads of the checkpoint."""
        held: dict[tuple[int, int, Form], _Held] = {}
        for item in inventory.items:
            if item.known.rule.expert:
                self._hold(item, routing, held)
            else:
                self._dense(item)
        if routing is not None:
            for (stage, expert_rank, form), experts in held.items():
                self._experts(stage, expert_rank, form, experts, routing)
        self._embedding(inventory)

    def _of_group(self, item: Item, group: int) -> tuple[Share, ...]:
        key = (item.form, group)
        shares = self._shares.get(key)
        if shares is None:
            shares = tuple(
                share(item.tensor, item.known, item.form.axes, item.form.packed, group, index, self.model)
                for index in range(group)
            )
            self._shares[key] = shares
        return shares

    def _read_dtype(self, dtype: str, what: What, rule: Rule | None) -> str:
        """As what a tensor is read: as stored, or plain weights and biases as what they are loaded as.

        Loading as a type of 8 or 4 bits is quantization: engines do that to linear layers alone. ``rule`` None: the
        embedding table.
        """
        loaded = self.step.weights_dtype
        if loaded is None or dtype not in FLOATS or what not in ("weight", "bias"):
            return dtype
        linear = what == "weight" and rule is not None and rule.product and rule.label not in UNQUANTIZED
        return loaded if loaded in FLOATS or linear else dtype

    def _stage(self, item: Item) -> int:
        if item.known.layer is not None:
            return self.layout.stage_of(item.known.layer)
        return 0 if item.known.rule.phase == "embedding" else self.layout.pipeline - 1

    def _dense(self, item: Item) -> None:
        shares = self._of_group(item, self.layout.tensor)
        dtype = self._read_dtype(item.tensor.dtype, item.known.what, item.known.rule)
        kind, name = self._kind(item)
        rule = item.known.rule
        key = Key(self._stage(item), rule.phase, kind, name, dtype)
        found = self.books.open(key, "header", f"checkpoint headers, such as {item.tensor.name}")
        for place in range(self.layout.ranks_per_stage):
            mine = shares[place % self.layout.tensor]
            if mine.elements:
                self._add(found, key, item, mine, place, touched=1.0, tokens=self.step.tokens, tensors=1)

    def _kind(self, item: Item) -> tuple[Kind, str]:
        rule, tensor = item.known.rule, self.layout.tensor
        if item.known.what == "metadata":
            return "quantization-metadata", rule.label if rule.label.endswith(
                "scales"
            ) else f"scales of {rule.label}"
        if tensor > 1 and rule.split == "whole":
            return "replicated-reads", rule.label
        if rule.split == "kv" and self.model.latent is None and tensor > self.model.kv_heads:
            return "replicated-reads", "key/value projections, on more ranks than heads"
        return "dense-weights", rule.label

    def _hold(self, item: Item, routing: Routing | None, held: dict[tuple[int, int, Form], _Held]) -> None:
        known, experts, layer = item.known, self.model.experts, item.known.layer
        if routing is None or experts is None or layer is None:
            raise ValueError(f"{item.tensor.name} is a routed expert's, and no routing is given")
        stage, form = self.layout.stage_of(layer), item.form
        for expert in range(experts) if known.expert is None else (known.expert,):
            key = (stage, expert * self.layout.expert // experts, form)
            found = held.get(key)
            if found is None:
                found = held[key] = _Held(item)
            found.count += 1
            if routing.uniform is None:
                load = routing.load(layer, expert)
                found.touched += load.touched
                found.tokens += load.tokens

    def _experts(self, stage: int, expert_rank: int, form: Form, held: _Held, routing: Routing) -> None:
        touched, tokens = held.touched, held.tokens
        if routing.uniform is not None:
            touched, tokens = held.count * routing.uniform.touched, held.count * routing.uniform.tokens
        shares = self._of_group(held.example, self.layout.expert_tensor)
        what = what_of(form.rule, form.part)
        dtype, metadata = self._read_dtype(form.dtype, what, form.rule), what == "metadata"
        kind: Kind = "quantization-metadata" if metadata else "routed-experts"
        key = Key(
            stage, form.rule.phase, kind, "scales of routed experts" if metadata else form.rule.label, dtype
        )
        found = self.books.open(key, routing.basis, f"checkpoint headers; {routing.source}")
        for place in range(self.layout.ranks_per_stage):
            mine, part = self.layout.expert_place(place)
            if mine == expert_rank and shares[part].elements:
                self._add(
                    found,
                    key,
                    held.example,
                    shares[part],
                    place,
                    touched=touched,
                    tokens=tokens,
                    tensors=held.count // (form.shape[0] // self.layout.expert if form.rule.stacked else 1),
                )

    def _add(
        self,
        found: Sum,
        key: Key,
        item: Item,
        mine: Share,
        place: int,
        *,
        touched: float,
        tokens: float,
        tensors: int,
    ) -> None:
        """``touched`` times the share's bytes are read, for ``tokens`` products with it."""
        found.bytes[place] += touched * mine.elements * BITS[key.dtype] / 8
        found.tensors[place] += tensors
        if not item.known.rule.product or item.known.what != "weight":
            return
        if mine.weights is None or mine.inputs is None or mine.outputs is None:
            found.flop = None
            self.unknown_arithmetic.append(item.tensor.name)
            return
        arithmetic = arithmetic_of(
            key.dtype, item.form.packed, self.model.quantization, self.step.compute_dtype
        )
        found.flop_dtypes.add(arithmetic)
        if found.flop is not None:
            found.flop[place] += 2 * tokens * mine.weights
        if self.step.activations:
            self._activations(key, item, mine, place, tokens, arithmetic)

    def _activations(
        self, key: Key, item: Item, mine: Share, place: int, tokens: float, arithmetic: str | None
    ) -> None:
        wide = BITS[self.step.compute_dtype]
        inputs = mine.inputs if item.known.rule.product == "first" else 0
        bits = (inputs or 0) * min(wide, arithmetic_bits(arithmetic, wide)) + (mine.outputs or 0) * wide
        into = Key(key.stage, key.phase, "activations", ACTIVATIONS, self.step.compute_dtype)
        found = self.books.open(into, "model", ACTIVATIONS_SOURCE)
        found.bytes[place] += tokens * bits / 8

    def _embedding(self, inventory: Inventory) -> None:
        """A step reads one row of the table per token."""
        table = inventory.embedding
        if table is None or len(table.shape) != 2:
            return
        dtype = self._read_dtype(table.dtype, "weight", None)
        split = self.step.embedding_split and self.layout.tensor > 1
        replicated = self.layout.tensor > 1 and not split
        kind: Kind = "replicated-reads" if replicated else "dense-weights"
        rows = Fraction(self.step.tokens, self.layout.tensor if split else 1)
        source = f"a row of {table.name} per token" + (
            f"; rows are divided over {self.layout.tensor} ranks, as many tokens expected on each"
            if split
            else ""
        )
        found = self.books.open(Key(0, "embedding", kind, "embedding rows", dtype), "model", source)
        for place in range(self.layout.ranks_per_stage):
            found.bytes[place] += float(rows * table.shape[1] * BITS[dtype] / 8)
            found.tensors[place] += 1
