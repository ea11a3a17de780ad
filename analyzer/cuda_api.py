"""What a CUDA or HIP call does to the host and to the device, read off its name.

The name only proposes: whether a call was really held by the device is decided by the evidence in the
trace (``reconstruct.blocking``). Sources: CUDA runtime/driver reference, "API synchronization behavior".
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import cache


class CallKind(IntEnum):
    """Role of a runtime or driver call."""

    OTHER = 0
    LAUNCH = 1
    GRAPH_LAUNCH = 2
    COPY_ASYNC = 3
    COPY_SYNC = 4
    SET = 5
    HOST_FUNCTION = 6
    STREAM_SYNC = 7
    DEVICE_SYNC = 8
    EVENT_SYNC = 9
    QUERY = 10
    EVENT_RECORD = 11
    STREAM_WAIT = 12
    ALLOCATE = 13  # may synchronize, may map memory
    FREE = 14
    MODULE_LOAD = 15
    GRAPH_BUILD = 16  # capture or instantiation


SUBMISSIONS = frozenset(
    {
        CallKind.LAUNCH,
        CallKind.GRAPH_LAUNCH,
        CallKind.COPY_ASYNC,
        CallKind.COPY_SYNC,
        CallKind.SET,
        CallKind.HOST_FUNCTION,
    }
)
"""Calls that put work on a stream: the "launch calls" of the attribution contract."""

LAUNCHES = frozenset({CallKind.LAUNCH, CallKind.GRAPH_LAUNCH})
"""Calls that start kernels, one or a replay of many."""

WAITS = frozenset({CallKind.STREAM_SYNC, CallKind.DEVICE_SYNC, CallKind.EVENT_SYNC})
"""Calls that wait for the device by their name."""

_SUFFIX = re.compile(r"(?:_v\d{4,})$")
_PER_THREAD = re.compile(r"_(?:ptsz|ptds)$")
_PREFIX = re.compile(r"^(?:cuda|cu|hip)(?=[A-Z])")

_RULES: tuple[tuple[re.Pattern[str], CallKind], ...] = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"^GraphLaunch", CallKind.GRAPH_LAUNCH),
        (r"^(?:Graph(?:Instantiate|Create|Clone|Add|ExecUpdate)|Stream(?:Begin|End)Capture)", CallKind.GRAPH_BUILD),
        (r"^Graph", CallKind.OTHER),
        (r"^(?:LaunchHostFunc|StreamAddCallback)", CallKind.HOST_FUNCTION),
        (r"^(?:Ext|Drv)?(?:Module)?Launch", CallKind.LAUNCH),
        (r"^(?:Memcpy|Memset)\w*Node", CallKind.OTHER),
        (r"^Memcpy\w*Async", CallKind.COPY_ASYNC),
        (r"^MemcpyPeer", CallKind.COPY_ASYNC),  # orders the devices; the host does not wait
        (r"^Memcpy", CallKind.COPY_SYNC),
        (r"^Memset", CallKind.SET),
        (r"^StreamSynchronize", CallKind.STREAM_SYNC),
        (r"^(?:Device|Ctx|Thread)Synchronize", CallKind.DEVICE_SYNC),
        (r"^EventSynchronize", CallKind.EVENT_SYNC),
        (r"^(?:Event|Stream)Query", CallKind.QUERY),
        (r"^EventRecord", CallKind.EVENT_RECORD),
        (r"^StreamWaitEvent", CallKind.STREAM_WAIT),
        (r"^(?:Malloc(?!Async|FromPool)|MemAlloc(?!Async|FromPool)|HostAlloc|HostRegister|HostMalloc|MemHostAlloc)",
         CallKind.ALLOCATE),
        (r"^(?:Free(?!Async)|MemFree(?!Async)|HostFree|HostUnregister|MemFreeHost)", CallKind.FREE),
        (r"^(?:Module|Library)(?:Load|GetFunction)", CallKind.MODULE_LOAD),
    )
)  # fmt: skip

DEVICE_ALLOCATION = re.compile(
    r"^(?:cuda|hip)Malloc(?!Host|Async|FromPool)|^cuMemAlloc(?!Host|Async)|^cuMemCreate"
)
"""Calls that allocate device memory from the driver (steady-state steps make none)."""


def base_name(name: str) -> str:
    """The call's name without profiler version suffix and per-thread-stream marks."""
    return _PER_THREAD.sub("", _SUFFIX.sub("", name))


@cache
def call_kind(name: str) -> CallKind:
    """Role of the call ``name`` (any spelling: ``cudaLaunchKernel_ptsz_v7000``, ``hipModuleLaunchKernel``)."""
    short = _PREFIX.sub("", base_name(name))
    for pattern, kind in _RULES:
        if pattern.match(short):
            return kind
    return CallKind.OTHER
