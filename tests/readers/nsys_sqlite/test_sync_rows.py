from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analyzer.model import Trace
from analyzer.readers.nsys_sqlite.bulk import NO_TIME
from analyzer.readers.nsys_sqlite.sync import resolve_records
from tests.readers.nsys_sqlite.builder import Export, gpid, gtid, reasons

NONE_32 = 2**32 - 1


def base() -> Export:
    return Export().kernel("k", 0, 1).kernel("k", 2, 3, streamId=9)


def lanes(trace: Trace) -> list[int | None]:
    return [trace.process.lanes[code].stream if code >= 0 else None for code in trace.process.syncs.lane]


def test_a_stream_a_context_and_a_device_that_the_row_does_not_tell(tmp_path: Path) -> None:
    export = base().kernel("k", 5, 6, deviceId=3, contextId=4, streamId=7)
    export.sync(10, 1).sync(20, 2, streamId=NONE_32).sync(30, 3, contextId=4)
    trace, other = export.read(tmp_path)
    assert lanes(trace) == [7, None, 7]
    assert [trace.process.lanes[code].device for code in trace.process.syncs.lane[[0, 2]]] == [0, 3]
    assert other.process is trace.process


def test_a_stream_without_work_gets_a_lane_on_its_contexts_device(tmp_path: Path) -> None:
    export = base().sync(10, 1, streamId=55, contextId=6)
    context = {"hwId": 0, "vmId": 1, "processId": 1001, "contextId": 6}
    export.row("TARGET_INFO_CUDA_CONTEXT_INFO", nullStreamId=50, deviceId=2, **context)
    (trace,) = export.read(tmp_path)
    (code,) = trace.process.syncs.lane
    lane = trace.process.lanes[code]
    assert (lane.device, lane.context, lane.stream) == (2, 6, 55)


@pytest.mark.parametrize(
    ("call", "polled"),
    [
        ("cudaEventQuery_v3020", True),
        ("cuStreamQuery", True),
        ("cudaStreamQuery_ptsz_v7000", True),
        ("cudaEventSynchronize_v3020", False),
        ("cudaStreamQueryBatch_v9000", False),
    ],
)
def test_only_queries_are_polled(tmp_path: Path, call: str, polled: bool) -> None:
    (trace,) = base().call(call, 9, 12, 1).sync(10, 1).read(tmp_path)
    assert trace.process.syncs.polled.tolist() == [polled]


def test_a_wait_depends_on_the_latest_earlier_record_of_its_event(tmp_path: Path) -> None:
    export = base()
    for correlation, start in ((1, 100), (2, 200), (3, 300)):
        export.call("cudaEventRecord_v3020", start, start + 5, correlation).record(
            correlation, event=4, streamId=9
        )
    export.call("cudaEventRecord_v3020", 240, 245, 6).record(6, event=5)
    export.call("cudaEventRecord_v3020", 245, 246, 7).record(7, event=4, contextId=2)
    export.call("cudaStreamWaitEvent_v3020", 250, 260, 10).sync(251, 10, eventId=4)
    export.call("cudaStreamWaitEvent_v3020", 90, 95, 11).sync(91, 11, eventId=4)
    (trace,) = export.read(tmp_path)
    assert trace.process.syncs.record_correlation.tolist() == [2, 0]
    assert reasons(trace) == {"unresolved-stream-wait": 1}
    records = trace.process.event_records
    assert [trace.process.lanes[code].stream for code in records.lane] == [9, 9, 9, 7, 7]


def test_an_event_of_another_process_is_another_event(tmp_path: Path) -> None:
    export = base().kernel("k", 0, 1, pid=2)
    export.call("cudaEventRecord_v3020", 100, 105, 1, globalTid=gtid(2)).record(1, event=4, globalPid=gpid(2))
    export.call("cudaStreamWaitEvent_v3020", 250, 260, 10).sync(251, 10, eventId=4)
    traces = export.read(tmp_path)
    assert [t.process.syncs.record_correlation.tolist() for t in traces] == [[], [0]]


def test_sync_ids_name_one_record_even_where_a_later_one_exists(tmp_path: Path) -> None:
    export = base()
    for correlation, start in ((1, 100), (2, 200)):
        export.call("cudaEventRecord_v3020", start, start + 5, correlation)
        export.record(correlation, event=4, eventSyncId=70 + correlation)
    for correlation, sync_id in ((10, 71), (11, 99), (12, NONE_32)):
        export.call("cudaStreamWaitEvent_v3020", 250 + correlation, 251 + correlation, correlation)
        export.sync(250 + correlation, correlation, eventId=4, eventSyncId=sync_id)
    (trace,) = export.read(tmp_path)
    # 99 was recorded outside the file: the older record of the same event would be the wrong one.
    assert trace.process.syncs.record_correlation.tolist() == [1, 0, 2]


def test_a_record_whose_call_was_cut_off_is_found_by_sync_id_only(tmp_path: Path) -> None:
    export = base().record(1, event=4, eventSyncId=71).record(2, event=5, eventSyncId=NONE_32)
    for correlation, event, sync_id in ((10, 4, 71), (11, 5, NONE_32)):
        export.call("cudaStreamWaitEvent_v3020", 250, 251, correlation)
        export.sync(250, correlation, eventId=event, eventSyncId=sync_id)
    (trace,) = export.read(tmp_path)
    assert trace.process.syncs.record_correlation.tolist() == [1, 0]


def test_resolution_equals_a_search_over_all_pairs() -> None:
    rng = np.random.default_rng(5)
    size = 400
    columns = {"globalPid": 3, "contextId": 2, "eventId": 4}

    def table(rows: int) -> dict[str, np.ndarray]:
        drawn = {name: rng.integers(0, high, rows) for name, high in columns.items()}
        return {**drawn, "eventSyncId": np.full(rows, NONE_32)}

    records, syncs = table(size), table(size)
    records["time"] = np.where(rng.random(size) < 0.1, NO_TIME, rng.integers(0, 300, size))
    records["correlationId"] = np.arange(1, size + 1)
    syncs["start"] = rng.integers(0, 300, size)
    found = resolve_records(syncs, records)
    for row, correlation in enumerate(found.tolist()):
        same = np.all([records[name] == syncs[name][row] for name in columns], axis=0)
        earlier = same & (records["time"] < syncs["start"][row]) & (records["time"] != NO_TIME)
        if not earlier.any():
            assert correlation == 0
        else:
            assert earlier[correlation - 1]
            assert records["time"][correlation - 1] == records["time"][earlier].max()
    assert 0 < (found == 0).sum() < size


def test_syncs_without_their_call_are_kept_and_counted(tmp_path: Path) -> None:
    (trace,) = base().call("cudaStreamSynchronize_v3020", 9, 12, 1).sync(10, 1).sync(20, 2).read(tmp_path)
    assert len(trace.process.syncs) == 2
    assert reasons(trace) == {"sync-without-call": 1}
