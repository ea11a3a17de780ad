"""What each event category of any profiler version is to this reader."""

from __future__ import annotations

from enum import IntEnum

from analyzer.model import DeviceKind, HostKind


class Role(IntEnum):
    """What a row becomes. Host and device roles are the model's kinds, moved by an offset."""

    IGNORED = 0
    UNKNOWN = 1
    NONE = 2  # no category: metadata rows, instants, and rows of exporters before Kineto
    SYNC = 3
    EVENT_RECORD = 4
    FLOW = 5
    HOST = 10
    CALL = HOST + HostKind.CALL
    OP = HOST + HostKind.OP
    RANGE = HOST + HostKind.RANGE
    FRAME = HOST + HostKind.FRAME
    OVERHEAD = HOST + HostKind.OVERHEAD
    DEVICE = 20
    COPY = DEVICE + DeviceKind.COPY
    SET = DEVICE + DeviceKind.SET


# Lower-case category -> role, torch 1.8 to 2.13. gpu_user_annotation is only a projection of a host range,
# the async flows repeat the correlation id, Trace is one span per file.
_ROLES: dict[str, int] = {
    "cpu_op": Role.OP,
    "operator": Role.OP,
    "user_annotation": Role.RANGE,
    "cuda_runtime": Role.CALL,
    "cuda_driver": Role.CALL,
    "runtime": Role.CALL,
    "python_function": Role.FRAME,
    "overhead": Role.OVERHEAD,
    "kernel": Role.DEVICE + DeviceKind.KERNEL,
    "gpu_memcpy": Role.COPY,
    "memcpy": Role.COPY,
    "gpu_memset": Role.SET,
    "memset": Role.SET,
    "cuda_sync": Role.SYNC,
    "cuda_event": Role.EVENT_RECORD,
    "fwdbwd": Role.FLOW,
    "forward_backward": Role.FLOW,
    "ac2g": Role.IGNORED,
    "async": Role.IGNORED,
    "async_cpu_to_gpu": Role.IGNORED,
    "gpu_user_annotation": Role.IGNORED,
    "cpu_instant_event": Role.IGNORED,
    "cuda_profiler_range": Role.IGNORED,
    "trace": Role.IGNORED,
}


class Roles(dict[str | None, int]):
    """Category text -> ``Role`` value, filled as categories are met."""

    def __missing__(self, category: str | None) -> int:
        role = int(Role.NONE if not category else _ROLES.get(category.lower(), Role.UNKNOWN))
        self[category] = role
        return role
