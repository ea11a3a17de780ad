"""The typed shapes that events are decoded into, and exact integer nanoseconds from their numbers."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation, localcontext

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Raw

from analyzer.model import IntArray

Number = int | float | str | None
NOT_THERE = math.nan
EMPTY = Raw(b"{}")
INT64_MAX = 2**63 - 1
MAX_NS = 2**62 - 1
"""Largest time that is believed (year 2116): a start and a duration up to here cannot overflow int64."""

# Below 2**43 us (101 days) neighbouring doubles are at most 2**-10 us apart, so that the double nearest to
# a decimal text is less than half a nanosecond from it.
_EXACT_BELOW_US = float(2**43)
_EXACT_INT_US = MAX_NS // 1000


class Event(msgspec.Struct, gc=False):
    """One event of the trace. ``args`` stays text until a category needs it; times are microseconds."""

    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: Number = None
    tid: Number = None
    ts: Number = NOT_THERE
    dur: Number = NOT_THERE
    id: Raw = EMPTY
    args: Raw = EMPTY


class Times(msgspec.Struct, gc=False):
    """The time fields of one event as the text that stands in the file."""

    ts: Raw = EMPTY
    dur: Raw = EMPTY


class CallArgs(msgspec.Struct, gc=False):
    """Arguments of a runtime or driver call."""

    correlation: Number = 0


class NameArgs(msgspec.Struct, gc=False):
    """Arguments of a metadata row that names a process or a thread."""

    name: Number = None


class DeviceArgs(msgspec.Struct, gc=False):
    """Arguments of a kernel, copy or set. Peer copies name ``inDevice`` instead of ``device``."""

    device: Number = None
    context: Number = None
    stream: Number = None
    correlation: Number = 0
    grid: list[Number] | str | None = None
    block: list[Number] | str | None = None
    registers: Number = msgspec.field(name="registers per thread", default=None)
    shared: Number = msgspec.field(name="shared memory", default=None)
    occupancy: Number = msgspec.field(name="est. achieved occupancy %", default=None)
    graph: Number = msgspec.field(name="graph id", default=None)
    node: Number = msgspec.field(name="graph node id", default=None)
    bytes: Number = None
    kind: Number = None
    in_device: Number = msgspec.field(name="inDevice", default=None)
    in_context: Number = msgspec.field(name="inContext", default=None)
    collective: Number = msgspec.field(name="Collective name", default=None)


class SyncArgs(msgspec.Struct, gc=False):
    """Arguments of a ``cuda_sync`` or ``cuda_event`` row."""

    kind: Number = msgspec.field(name="cuda_sync_kind", default=None)
    device: Number = None
    context: Number = None
    stream: Number = None
    correlation: Number = 0
    wait_stream: Number = msgspec.field(name="wait_on_stream", default=None)
    record: Number = msgspec.field(name="wait_on_cuda_event_record_corr_id", default=None)


class CommArgs(msgspec.Struct, gc=False):
    """Collective metadata, on ``record_param_comms`` and on the kernels linked to it."""

    op: Number = msgspec.field(name="Collective name", default=None)
    dtype: Number = None
    in_elements: Number = msgspec.field(name="In msg nelems", default=None)
    out_elements: Number = msgspec.field(name="Out msg nelems", default=None)
    group: Number = msgspec.field(name="Process Group Name", default=None)
    group_id: Number = msgspec.field(name="Process Group ID", default=None)
    description: Number = msgspec.field(name="Process Group Description", default=None)
    size: Number = msgspec.field(name="Group size", default=None)
    ranks: list[Number] | str | None = msgspec.field(name="Process Group Ranks", default=None)
    rank_start: Number = msgspec.field(name="Global rank start", default=None)
    rank_stride: Number = msgspec.field(name="Global rank stride", default=None)
    sequence: Number = msgspec.field(name="Seq", default=None)
    src_rank: Number = msgspec.field(name="Src Rank", default=None)
    dst_rank: Number = msgspec.field(name="Dst Rank", default=None)


EVENTS = msgspec.json.Decoder(list[Event])
ONE_EVENT = msgspec.json.Decoder(Event)
TIMES = msgspec.json.Decoder(list[Times])


def proven_ns(values: list[Number]) -> IntArray | None:
    """Nanoseconds of decoded microseconds, or None where a double does not prove the decimal text.

    ``values`` are ints or the doubles nearest to the text. A double ``us`` below 2**43 that equals
    ``ns / 1000`` (correctly rounded) lies less than half a nanosecond from every text that decodes to
    it, so ``ns`` is what the text rounds to. Multiplying ``us * 1000`` is no proof: between 2**42 and
    2**52 / 1000 the product itself can be off by half a nanosecond.
    """
    array = np.array(values)
    if array.dtype.kind == "i":
        whole = array.astype(np.int64)
        return whole * 1000 if _all_below(whole, _EXACT_INT_US) else None
    if array.dtype.kind != "f" or not _all_below(array, _EXACT_BELOW_US):
        return None
    whole_us = np.floor(array)
    ns = whole_us.astype(np.int64) * 1000 + np.rint((array - whole_us) * 1000).astype(np.int64)
    return ns if bool((ns / 1000.0 == array).all()) else None


def _all_below(values: npt.NDArray[np.generic], bound: float) -> bool:
    """NaN (a field that is not there) is not below anything."""
    return bool((np.abs(values) < bound).all())


def text_ns(text: bytes) -> int | None:
    """Nanoseconds of a JSON number or numeric string in microseconds; None if it is neither.

    Exact for any number of digits; a fraction of a nanosecond is rounded half to even.
    """
    text = text.strip(b' "')
    whole, _, fraction = text.partition(b".")
    try:
        if len(fraction) == 3 and fraction.isdigit() and whole.lstrip(b"-").isdigit():
            ns = int(whole + fraction)
        else:
            ns = _decimal_ns(text.decode("ascii"))
    except (InvalidOperation, UnicodeDecodeError):
        return None
    return ns if abs(ns) <= MAX_NS else None


def _decimal_ns(text: str) -> int:
    value = Decimal(text)
    if not value.is_finite() or value.adjusted() > 18:
        raise InvalidOperation(text)
    with localcontext() as context:
        context.prec = max(50, len(text) + 4)
        return int(value.scaleb(3).to_integral_value(rounding=ROUND_HALF_EVEN))


def as_int(value: object, default: int) -> int:
    """An int that fits int64 from a number or numeric string, else ``default``."""
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            return default
    if isinstance(value, float):
        if not value.is_integer():
            return default
        value = int(value)
    if not isinstance(value, int) or abs(value) > INT64_MAX:
        return default
    return value


def as_text(value: object) -> str | None:
    """The text of a scalar; None for what is not there or no scalar."""
    if isinstance(value, str):
        return value
    return None if value is None or isinstance(value, list | dict) else str(value)
