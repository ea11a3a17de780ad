"""Which rank a program with torch is, and whether its place in the run folder is free."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from collectors import clocks
from collectors.errors import CollectError
from collectors.launch import Identity, identity
from collectors.manifest import RankRecord
from collectors.run_folder import RunFolder


def agreed_identity(environment: Mapping[str, str]) -> Identity:
    """The rank by the launcher's variables; by torch.distributed where there are none and it is initialized.

    Raises CollectError where both tell and do not agree.
    """
    who = identity(environment)
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return who
    rank, world_size = distributed.get_rank(), distributed.get_world_size()
    if who.launcher == "plain":
        return Identity(rank, who.local_rank, world_size, who.launcher)
    if rank != who.rank or who.world_size not in (None, world_size):
        raise CollectError(
            "rank",
            f"is {who.rank} of {who.world_size} by the environment ({who.launcher}), "
            f"{rank} of {world_size} by torch.distributed",
            "set RANK and WORLD_SIZE to what torch.distributed has, or unset them",
        )
    return Identity(rank, who.local_rank, world_size, who.launcher)


def refuse_used(folder: RunFolder, who: Identity) -> None:
    """Raises CollectError where the folder holds this rank's capture already, or another run's.

    A record that was left ``running`` by a process that is gone is replaced: the rank was started again.
    """
    for record in folder.records_of("torch"):
        if record.rank == who.rank:
            if record.status != "running":
                raise _taken(folder, f"holds the capture of rank {who.rank} already")
            if record.pid != os.getpid() and is_alive(record):
                raise CollectError(
                    str(folder.path),
                    f"process {record.pid} captures rank {who.rank} into it",
                    "start the ranks under torchrun, or set RANK and WORLD_SIZE in each",
                )
        elif who.world_size is not None and record.world_size not in (None, who.world_size):
            raise _taken(folder, f"holds a run of {record.world_size} ranks, this one has {who.world_size}")


def _taken(folder: RunFolder, why: str) -> CollectError:
    return CollectError(str(folder.path), why, "pass another folder, or remove this one")


def is_alive(record: RankRecord) -> bool:
    """Whether the process of a record is known to run; False where it runs under another kernel, if at all."""
    if record.pid is None or record.boot_id is None or record.boot_id != clocks.boot_id():
        return False
    try:
        os.kill(record.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
