"""CPU work on the path as tables."""

from __future__ import annotations

from analyzer.report.host_work import host_short
from tests.report.builder import culprit, diagnosis


def test_rows_that_differ_in_their_thread_alone_name_it() -> None:
    rows = [
        culprit("gloo:all_reduce", thread="thread 73 (pt_gloo_runloop)", stack=[], path_ns=4),
        culprit("gloo:all_reduce", thread="thread 71 (python)", stack=[], path_ns=3),
        culprit("aten::mm", thread="thread 1", stack=[], path_ns=2),
    ]
    shown = host_short(diagnosis(host_culprits=rows))
    assert "`gloo:all_reduce` on `thread 73 (pt_gloo_runloop)`" in shown
    assert "`gloo:all_reduce` on `thread 71 (python)`" in shown
    assert "| `aten::mm` " in shown
    assert "thread 1`" not in shown
