from __future__ import annotations

import numpy as np

from analyzer.predict.host_time import HostTime, host_time
from tests.builders import account_of, schedule


def test_time_between_instants_is_told_apart_by_kind_whatever_the_cut() -> None:
    built = (
        schedule()
        .range(0, 99, "step")
        .launch(10, 14, runs=(20, 40))
        .launch(20, 24, runs=(41, 50))
        .range(30, 60, "detokenize")
        .overhead(70, 80)
    )
    account = account_of(built, steps="^step$", output_ranges="detokenize")

    def between(*instants: int) -> HostTime:
        at = np.array(instants, np.int64) * 1000
        thread = account.account.thread(0)
        return host_time(thread, account.calls, 0, at[:-1], at[1:], steps_here=True)

    whole = between(0, 99)
    assert whole.dispatch_ns.tolist() == [6_000]
    assert whole.output_ns.tolist() == [30_000]
    assert whole.profiler_ns.tolist() == [10_000]
    assert whole.work_ns.tolist() == [10_000 + 6_000 + 10_000 + 19_000]
    parts = between(0, 12, 17, 35, 75, 99)
    assert parts.dispatch_ns.tolist() == [0, 3_000, 3_000, 0, 0]
    assert parts.output_ns.tolist() == [0, 0, 5_000, 25_000, 0]
    assert parts.profiler_ns.tolist() == [0, 0, 0, 5_000, 5_000]
    assert parts.work_ns.sum() == whole.work_ns.sum()
