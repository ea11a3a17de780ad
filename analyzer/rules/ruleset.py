"""Ordered rules and what they say of a name. The first rule that matches wins.

Names are weak evidence. Metadata that the capture recorded beats them, and a protocol or algorithm is never
read off an NCCL name (all protocols launch the same entry kernel).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from analyzer.kernel_names import base_name, full_name
from analyzer.rules.search import FirstMatch, Match

OTHER = "other"
"""The class of a kernel that no rule knows."""

COLLECTIVE, EXPERT_PARALLEL = "collective", "collective.ep"
"""The classes of kernels that communicate with other ranks; only ``[[collective]]`` rules give them."""


@dataclass(frozen=True)
class KernelRule:
    """Kernels of one class."""

    class_: str
    match: Match


@dataclass(frozen=True)
class CollectiveRule:
    """Kernels that communicate with other ranks; ``local``: that look like it and do not.

    ``fused``: the kernel also computes (normalization, quantization, a GEMM), so that its time is not all
    communication. ``operation`` None: the name's ``[[operation]]`` decides.
    """

    match: Match
    class_: str = COLLECTIVE
    family: str | None = None
    operation: str | None = None
    fused: bool = False
    local: bool = False


@dataclass(frozen=True)
class OperationRule:
    """How names and recorded metadata spell one collective operation."""

    operation: str
    match: Match


@dataclass(frozen=True)
class Rules:
    """All rules in the order in which they are tried. Immutable; what was decided of a name is remembered."""

    kernels: tuple[KernelRule, ...] = ()
    collectives: tuple[CollectiveRule, ...] = ()
    operations: tuple[OperationRule, ...] = ()
    copies: tuple[Match, ...] = ()
    fills: tuple[Match, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    sources: tuple[str, ...] = ()  # the user's files, as given; the first one's rules win

    @cached_property
    def _first_kernel(self) -> FirstMatch:
        return FirstMatch([rule.match for rule in self.kernels])

    @cached_property
    def _first_collective(self) -> FirstMatch:
        return FirstMatch([rule.match for rule in self.collectives])

    @cached_property
    def _classes(self) -> dict[str, str]:
        return {}

    @cached_property
    def _communication(self) -> dict[str, CollectiveRule | None]:
        return {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))

    def _collective_rule(self, name: str) -> CollectiveRule | None:
        if name not in self._communication:
            at = self._first_collective(base_name(name), full_name(name))
            rule = None if at is None else self.collectives[at]
            self._communication[name] = None if rule is None or rule.local else rule
        return self._communication[name]

    def is_collective(self, name: str) -> bool:
        """Whether a kernel of this name communicates with other ranks."""
        return self._collective_rule(name) is not None

    def collective_operation(self, name: str) -> str | None:
        """The operation that a collective kernel's name tells, or None (``Generic`` tells nothing)."""
        rule = self._collective_rule(name)
        if rule is not None and rule.operation is not None:
            return rule.operation
        return self._operation(base_name(name), full_name(name))

    def metadata_operation(self, recorded: str) -> str:
        """A recorded collective name (``_allgather_base``, ``allreduce_coalesced``, ...) in one spelling."""
        return self.known_operation(recorded) or recorded

    def known_operation(self, text: str) -> str | None:
        """The operation that a text spells (``ncclAllReduce``, ``all_to_all``), None where it spells none."""
        return self._operation(text, text)

    def _operation(self, base: str, full: str) -> str | None:
        return next((rule.operation for rule in self.operations if rule.match(base, full)), None)

    def collective_family(self, name: str) -> str | None:
        """Who made the collective (``nccl``, ``custom``, ``nvshmem``, ``deepep``, ...); None: it is none."""
        rule = self._collective_rule(name)
        return None if rule is None else rule.family

    def is_fused_collective(self, name: str) -> bool:
        """Whether a collective kernel of this name also computes: its time is not all communication."""
        rule = self._collective_rule(name)
        return rule is not None and rule.fused

    def is_copy_kernel(self, name: str) -> bool:
        """A kernel by which the runtime copies (AMD's blit kernels)."""
        return any(match(base_name(name), full_name(name)) for match in self.copies)

    def is_fill_kernel(self, name: str) -> bool:
        """A kernel by which the runtime sets memory (AMD's blit kernels)."""
        return any(match(base_name(name), full_name(name)) for match in self.fills)

    def kernel_class(self, name: str) -> str:
        """The class of a kernel of this name, "other" where no rule knows it."""
        if name not in self._classes:
            self._classes[name] = self._class_of(name)
        return self._classes[name]

    def _class_of(self, name: str) -> str:
        communication = self._collective_rule(name)
        if communication is not None:
            return communication.class_
        at = self._first_kernel(base_name(name), full_name(name))
        return OTHER if at is None else self.kernels[at].class_
