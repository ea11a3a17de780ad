"""What an export itself says of ranks: NCCL's payload, MPI's thread names, launchers' variables."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from analyzer.readers.nsys_sqlite.bulk import Database
from analyzer.readers.nsys_sqlite.host import NVTX, NVTX_THREAD_NAME, nvtx_definitions
from analyzer.readers.nsys_sqlite.strings import Strings


class RankHint(NamedTuple):
    """What the file says of a process: its rank, the number of ranks, and (NCCL only) on which device."""

    rank: int
    world_size: int | None
    device: int | None = None


@dataclass(frozen=True)
class RankHints:
    """All hints of one file."""

    nccl: dict[int, list[RankHint]]  # by globalPid
    mpi: dict[int, int]  # by globalPid
    environment: RankHint | None

    def of(self, process: int, device: int, alone: bool) -> tuple[int | None, int | None]:
        """(rank, world size) of one device of one process; (None, None) where the file does not tell.

        NCCL's own word comes first: the largest communicator, if it names one rank only. ``alone``: the
        process has one device, so that a rank of the process is a rank of the device.
        """
        hints = [hint for hint in self.nccl.get(process, ()) if alone or hint.device == device]
        largest = max((hint.world_size or 0 for hint in hints), default=0)
        ranks = {hint.rank for hint in hints if hint.world_size == largest}
        if len(ranks) == 1:
            return ranks.pop(), largest
        if not alone:
            return None, None
        environment = self.environment
        if process in self.mpi:
            agrees = environment is not None and environment.rank == self.mpi[process]
            return self.mpi[process], environment.world_size if environment is not None and agrees else None
        return (None, None) if environment is None else (environment.rank, environment.world_size)


def rank_hints(database: Database, strings: Strings, processes: list[int]) -> RankHints:
    """Everything the file says; the environment counts only where one process was captured."""
    environment = _environment_rank(database) if len(processes) == 1 else None
    return RankHints(_nccl_ranks(database), _mpi_ranks(database, strings), environment)


def _nccl_ranks(database: Database) -> dict[int, list[RankHint]]:
    """By globalPid, from the payload of NCCL's init ranges (exports with ``--include-json=true``)."""
    table = database.table(NVTX)
    hints: dict[int, list[RankHint]] = {}
    if table is None or not database.has(table, "jsonText", "globalTid"):
        return hints
    where = sa.column("jsonText").like('%"No. of ranks"%')
    for thread, text in database.rows(table, ("globalTid", "jsonText"), where):
        try:
            payload = json.loads(text)
        except ValueError:
            continue
        if not isinstance(payload, dict) or thread is None:
            continue
        rank, size, device = (payload.get(key) for key in ("Rank", "No. of ranks", "CUDA device"))
        if isinstance(rank, int) and isinstance(size, int) and 0 <= rank < size:
            hint = RankHint(rank, size, device if isinstance(device, int) else None)
            hints.setdefault(thread & ~0xFFFFFF, []).append(hint)
    return hints


def _mpi_ranks(database: Database, strings: Strings) -> dict[int, int]:
    """By globalPid, from the thread name that nsys's MPI tracing sets (``MPI Rank 0``)."""
    table = database.table(NVTX)
    names = nvtx_definitions(database, strings, table, NVTX_THREAD_NAME) if table else []
    matches = ((thread, re.fullmatch(r"MPI Rank (\d+)", text)) for thread, _, text in names)
    return {thread & ~0xFFFFFF: int(match.group(1)) for thread, match in matches if match}


# (rank, number of ranks, a key that must be there too). Slurm sets SLURM_PROCID=0 also in the batch script
# itself, where it is nobody's rank; only inside a job step, which `srun` starts, is it one.
_ENVIRONMENT = (
    ("RANK", "WORLD_SIZE", None),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", None),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", None),
    ("PMI_RANK", "PMI_SIZE", None),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID"),
)
_KEYS = frozenset(key for keys in _ENVIRONMENT for key in keys if key)
_ASSIGNMENT = re.compile(f"({'|'.join(sorted(_KEYS))})=([0-9]{{1,9}})")


def _environment_rank(database: Database) -> RankHint | None:
    """Rank and size from the environment of the profiled program; no other variable leaves this function."""
    found: dict[str, int] = {}
    name: sa.ColumnClause[Any] = sa.column("name")
    value: sa.ColumnClause[Any] = sa.column("value")
    rows = database.rows("TARGET_INFO_SYSTEM_ENV", ("value",), name == "DeviceEnvironment")
    is_key = sa.or_(*(value.op("GLOB")(f"{key}=[0-9]*") for key in sorted(_KEYS)))
    where = name.op("GLOB")("*ENVIRONMENT_VARIABLE*") & is_key
    rows += database.rows("META_DATA_CAPTURE", ("value",), where)
    for (text,) in rows:
        assignments = (_ASSIGNMENT.fullmatch(item) for item in _variables(str(text)))
        found.update((match[1], int(match[2])) for match in assignments if match)
    for rank, size, needed in _ENVIRONMENT:
        if rank in found and (needed is None or needed in found):
            return RankHint(found[rank], found.get(size))
    return None


def _variables(text: str) -> list[str]:
    """The variables of one row: a single one, or all of them, separated by NUL (nsys 2022) or ``;`` (2025)."""
    if text.count("=") < 2:
        return [text]
    separator = next((sign for sign in "\0\n" if sign in text), ";")
    return text.split(separator)
