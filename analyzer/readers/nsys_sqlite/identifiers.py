"""Nsight Systems' 64-bit identifiers: hardware 8 bits | VM 8 bits | process 24 bits | thread 24 bits.

Source: the exporter's SQLite schema reference (2026.4), and every export checked against it.
"""

from __future__ import annotations

import numpy as np

from analyzer.model import IntArray

NOT_APPLICABLE_32 = 0xFFFF_FFFF
"""What 32-bit columns (streamId, eventId, eventSyncId) hold for "not applicable"."""

NO_PROCESS = -1
"""Stands for a NULL globalPid/globalTid in arrays. No real id has all bits set."""

_THREAD_BITS = 24
_FIELD = 0xFF_FFFF
_UNSIGNED = 0xFFFF_FFFF_FFFF_FFFF


def global_pid_of(global_tid: IntArray) -> IntArray:
    """(n,) globalPid of globalTids; ``NO_PROCESS`` stays as it is."""
    masked = global_tid & ~np.int64(_FIELD)
    return np.where(global_tid == NO_PROCESS, np.int64(NO_PROCESS), masked)


def pid_of(global_id: int) -> int:
    """The system's pid inside a globalPid or globalTid."""
    return (global_id & _UNSIGNED) >> _THREAD_BITS & _FIELD


def tid_of(global_tid: int) -> int:
    """The thread field of a globalTid."""
    return global_tid & _FIELD


def vm_of(global_id: int) -> int:
    """The VM field."""
    return (global_id & _UNSIGNED) >> 48 & 0xFF


def hardware_of(global_id: int) -> int:
    """The hardware field; 128 and above make the stored 64-bit value negative."""
    return (global_id & _UNSIGNED) >> 56
