"""What every event had to wait for: edges of the event graph, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from analyzer.model import Columns, IntArray, SmallArray

BoolArray = npt.NDArray[np.bool_]


class EdgeKind(IntEnum):
    """Why one event waits for another."""

    HOST = 0  # the same thread was busy with something until then
    SUBMISSION = 1  # the launch call began
    STREAM = 2  # the stream's previous work
    EVENT = 3  # a recorded order across streams, or of one graph's replays
    GRAPH = 4  # order inside a replay
    UNSEEN = 5  # inferred: nothing recorded explains the wait
    HELD = 6  # a call returns after the work that it waited for
    HANDOVER = 7  # another thread
    MEETING = 8  # a collective is done after its own member, or the last one, came
    ARRIVAL = 10  # the last member of a collective has come
    REPLAYED = 9  # order inside a replay that a change brought about


@dataclass(frozen=True)
class Edges(Columns):
    """Edges as (e,) columns: ``target`` cannot be earlier than ``source`` and a lag.

    Events are numbered. ``done``: the lag counts from the end of the source (device work), else from its
    instant. An edge that *binds* has the lag that was observed. Another one has ``least_ns``, the least that
    such a lag takes in this capture, or ``usual_ns``; never more than was observed.
    ``sample``: lags of one number are of one kind, -1 of none. ``beyond``: the source is another stream's work, which
    only a recorded wait for an event puts before the target.
    """

    target: IntArray
    source: IntArray
    kind: SmallArray  # EdgeKind
    done: BoolArray
    binds: BoolArray
    inferred: BoolArray
    least_ns: IntArray
    usual_ns: IntArray
    sample: IntArray
    beyond: BoolArray


def edges(
    target: IntArray,
    source: IntArray,
    kind: EdgeKind,
    *,
    done: bool = False,
    binds: BoolArray | bool = False,
    inferred: BoolArray | bool = False,
    least_ns: IntArray | int = 0,
    usual_ns: IntArray | int | None = None,
    sample: IntArray | int = -1,
    beyond: BoolArray | bool = False,
) -> Edges:
    """Edges of one kind; scalars hold for all of them. ``usual_ns`` None: the same as ``least_ns``."""
    n = len(target)

    def column(value: object, dtype: type) -> npt.NDArray[np.generic]:
        return np.broadcast_to(np.asarray(value, dtype), (n,)).copy()

    return Edges(
        target=np.asarray(target, np.int64),
        source=np.asarray(source, np.int64),
        kind=np.full(n, kind, np.int8),
        done=column(done, np.bool_),  # type: ignore[arg-type]
        binds=column(binds, np.bool_),  # type: ignore[arg-type]
        inferred=column(inferred, np.bool_),  # type: ignore[arg-type]
        least_ns=column(least_ns, np.int64),  # type: ignore[arg-type]
        usual_ns=column(least_ns if usual_ns is None else usual_ns, np.int64),  # type: ignore[arg-type]
        sample=column(sample, np.int64),  # type: ignore[arg-type]
        beyond=column(beyond, np.bool_),  # type: ignore[arg-type]
    )


def join_edges(parts: list[Edges]) -> Edges:
    """All edges of several tables."""
    nothing: IntArray = np.empty(0, np.int64)
    parts = [edges(nothing, nothing, EdgeKind.HOST), *parts]
    return Edges(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])})
