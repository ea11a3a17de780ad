from __future__ import annotations

from analyzer.model import MemoryKind
from analyzer.predict.host_events import HostEvents, Role, find_waits, host_events
from tests.builders import Schedule, account_of, schedule


def events_of(built: Schedule) -> HostEvents:
    account = account_of(built, steps="^step$")
    return host_events(account, find_waits(account))


def test_steps_launches_and_waits_are_events_with_what_lies_between_them() -> None:
    found = events_of(
        schedule()
        .range(0, 99, "step")
        .launch(10, 14, runs=(20, 60))
        .launch(16, 20, runs=(61, 81))
        .sync(22, 87, stream=7)
    )
    assert (found.at_ns // 1000).tolist() == [0, 10, 16, 22, 87, 99]
    assert found.role.tolist() == [Role.MARK, Role.CALL, Role.CALL, Role.CALL, Role.RETURN, Role.MARK]
    assert found.entry.tolist() == [-1, -1, -1, -1, 3, -1]
    assert (found.call_ns // 1000).tolist() == [0, 4, 4, 0, 0, 0]
    assert found.waits.tolist() == [False, False, False, True, True, False]
    assert found.launches.tolist() == [False, True, True, False, False, False]
    assert (found.work_ns // 1000).tolist() == [0, 10, 0, 2, 0, 12]
    assert (found.dispatch_ns // 1000).tolist() == [0, 0, 2, 0, 0, 0]
    assert (found.stray_ns // 1000).tolist() == [0, 10, 0, 2, 0, 12]


def test_a_polling_loop_is_one_wait() -> None:
    found = events_of(
        schedule()
        .range(0, 99, "step")
        .launch(10, 14, runs=(20, 60))
        .query(20, 21, ready=False)
        .query(30, 31, ready=False)
        .query(61, 62, ready=True)
    )
    assert (found.at_ns // 1000).tolist() == [0, 10, 20, 62, 99]
    assert found.entry.tolist() == [-1, -1, -1, 2, -1]


def test_overhead_and_pageable_copies_are_told_apart() -> None:
    found = events_of(
        schedule()
        .range(0, 99, "step")
        .overhead(2, 7)
        .copy(10, 14, runs=(20, 60), host=MemoryKind.PAGEABLE)
        .copy(16, 20, runs=(61, 70))
        .launch(22, 26, runs=(71, 80))
    )
    assert (found.at_ns // 1000).tolist() == [
        0,
        10,
        14,
        16,
        22,
        99,
    ]  # what goes through pageable memory may wait
    assert (found.profiler_ns // 1000).tolist() == [0, 5, 0, 0, 0, 0]
    assert found.capturable.tolist() == [False, False, False, True, True, False]
