"""What a device kernel's name tells: its base name, whether it is a collective, a copy or a fill.

Names are weak evidence. Metadata that the capture recorded beats them, and a protocol or algorithm is
never read off an NCCL name (all protocols launch the same entry kernel). Patterns match the *base name*
(and namespace), because template arguments hold misleading words.
"""

from __future__ import annotations

import re
from functools import cache

_NOISE = re.compile(r"\(anonymous namespace\)::|<unnamed>::|^(?:void|int|bool|float) +")
_IDENTIFIER = re.compile(r"(\d+)")

_NCCL = re.compile(r"^_*nccl(?!_local)", re.IGNORECASE)
_NOT_COMMUNICATION = re.compile(r"^oneRankReduce")
_LOCAL_LOOKALIKE = re.compile(
    r"^triton_|^splitK|(?:^|::)(?:splitK)?reduce_kernel$|^cub::|^at::native::|groupnorm|_combine_kernel$|^thrust::|^rocprim::",
    re.IGNORECASE,
)
_ENGINE = re.compile(
    r"""
      cross_device_(?:reduce|all_gather|reduce_scatter)
    | quickreduce|allreduce_prototype
    | all_?reduce | reduce_?scatter | all_?gather | all_?to_?all | _a2a_
    | (?:^|::)multimem_
    | lamport | minimax_reduce_ | mnnvl | direct_dcp_\w*multimem
    | (?:^|::)k?userbuffers_
    | local_device_load_rmsnorm
    | deep_ep:: | (?:^|::)(?:hybrid_)?(?:dispatch|combine)(?:_impl)?$ | nccl_ep_jit
    | moeA2A | moeAllToAll | computeSendRecv
    | nvshmem | (?:barrier|sync|alltoall|broadcast|fcollect|rdxn|reducescatter)_on_stream_kernel
    | mscclpp:: | ^mscclKernel
    | ipc_(?:rsag|topo_rsag8|tp2)_ | push_oneshot_param
    """,
    re.IGNORECASE | re.VERBOSE,
)

_OPERATIONS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), op)
    for pattern, op in (
        (r"all_?reduce|cross_device_reduce(?!_scatter)|oneshot_lamport|quickreduce", "all_reduce"),
        (r"reduce_?scatter", "reduce_scatter"),
        (r"all_?gather", "all_gather"),
        (r"all_?to_?all|alltoall|_a2a_|moeA2A", "all_to_all"),
        (r"send_?recv", "send_recv"),
        (r"broadcast", "broadcast"),
        (r"dispatch", "dispatch"),
        (r"combine", "combine"),
        (r"^nccl\w*kernel\w*_reduce_", "reduce"),
        (r"^_?send$", "send"),
        (r"^_?recv$", "recv"),
        (r"barrier", "barrier"),
    )
)

_COPY_KERNEL = re.compile(r"^__amd_rocclr_copy", re.IGNORECASE)
_FILL_KERNEL = re.compile(r"^__amd_rocclr_fill", re.IGNORECASE)


def _mangled(name: str) -> str:
    """Identifiers of an Itanium-mangled name joined by ``::`` (``_ZN5aiter3fooI..`` -> ``aiter::foo``)."""
    parts: list[str] = []
    at = 3 if name.startswith("_ZN") else 2
    while (match := _IDENTIFIER.match(name, at)) is not None:
        length = int(match.group(1))
        parts.append(name[match.end() : match.end() + length])
        at = match.end() + length
    return "::".join(parts) or name


@cache
def base_name(name: str) -> str:
    """Namespace and function of a kernel name, without return type, template and argument text."""
    if name.startswith("_Z"):
        return _mangled(name)
    stripped = _NOISE.sub("", _NOISE.sub("", name))
    return re.split(r"[<(]", stripped, maxsplit=1)[0].removesuffix(".kd").strip() or name


@cache
def is_collective(name: str) -> bool:
    """Whether a kernel of this name communicates with other ranks."""
    base = base_name(name)
    if _NOT_COMMUNICATION.match(base):
        return False
    if _NCCL.match(base.rsplit("::", 1)[-1]):
        return True
    if _LOCAL_LOOKALIKE.search(base):
        return False
    return _ENGINE.search(base) is not None


@cache
def collective_operation(name: str) -> str | None:
    """The operation that a collective kernel's name tells, or None (``Generic`` tells nothing)."""
    base = base_name(name)
    for pattern, op in _OPERATIONS:
        if pattern.search(base):
            return op
    return None


@cache
def metadata_operation(recorded: str) -> str:
    """A recorded collective name (``_allgather_base``, ``allreduce_coalesced``, ...) in one spelling."""
    for pattern, op in _OPERATIONS:
        if pattern.search(recorded):
            return op
    return recorded


@cache
def is_copy_kernel(name: str) -> bool:
    """A kernel by which the runtime copies (AMD's blit kernels)."""
    return _COPY_KERNEL.match(base_name(name)) is not None


@cache
def is_fill_kernel(name: str) -> bool:
    """A kernel by which the runtime sets memory (AMD's blit kernels)."""
    return _FILL_KERNEL.match(base_name(name)) is not None
