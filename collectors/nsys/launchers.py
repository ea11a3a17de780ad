"""Whether a command starts several ranks itself. Then one nsys around it sees all of them that run below it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_NAMES = frozenset(("torchrun", "mpirun", "mpiexec", "orterun", "srun", "deepspeed", "accelerate"))
_MODULES = frozenset(("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"))
_ASSIGNMENT = re.compile(r"\w+=.*", re.S)
_PYTHON = re.compile(r"python[\d.]*")


def launcher_of(command: Sequence[str]) -> str | None:
    """The launcher's name, None for a plain command. ``env A=b torchrun`` and ``python -m`` are seen through."""
    words = list(command)
    if words and Path(words[0]).name == "env":
        words = words[1:]
        while words and _ASSIGNMENT.fullmatch(words[0]):
            words = words[1:]
    if not words:
        return None
    name = Path(words[0]).name
    if _PYTHON.fullmatch(name) and words[1:2] == ["-m"] and words[2:3] and words[2] in _MODULES:
        return words[2]
    return name if name in _NAMES else None


def note(name: str) -> str:
    """What a reader of the one capture must know."""
    instead = f"put the collector behind it: {name} ... python -m collectors nsys -- CMD"
    if name == "srun":
        return f"srun starts its ranks through the node's daemon, where nsys does not follow; {instead}"
    if name in ("mpirun", "mpiexec", "orterun"):
        return f"{name} starts the ranks: one file holds those of this host; for other hosts {instead}"
    return f"{name} starts the ranks: one file holds all of this host"
