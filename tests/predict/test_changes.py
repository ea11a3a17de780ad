from __future__ import annotations

import re

import pytest

from analyzer.errors import UsageError
from analyzer.predict.changes import (
    CPU,
    FORMS,
    ByteFloor,
    Collectives,
    CollectivesHidden,
    Copies,
    GraphCapture,
    Host,
    HostKind,
    Kernels,
    NoDependencies,
    NoSkew,
    NoSync,
    SmallGrids,
    Turnaround,
    parse,
)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("graph-capture", GraphCapture()),
        ("no-sync", NoSync()),
        ("no-skew", NoSkew()),
        ("no-dependencies", NoDependencies()),
        ("collectives-hidden", CollectivesHidden()),
        ("no-overhead", Host((HostKind.PROFILER,), 0.0)),
        ("host=0.8", Host(CPU, 0.8)),
        ("host-work=0.5", Host((HostKind.WORK,), 0.5)),
        ("dispatch=2", Host((HostKind.DISPATCH,), 2.0)),
        ("output=0", Host((HostKind.OUTPUT,), 0.0)),
        ("small-grids=0.5", SmallGrids(0.5)),
        ("copies=0.25", Copies(0.25)),
        ("turnaround=1.5", Turnaround(1.5)),
        ("kernel:gemm.*=0.5", Kernels(re.compile("gemm.*"), 0.5)),
        ("kernel:a=b=0.5", Kernels(re.compile("a=b"), 0.5)),
        ("byte-floor:attention=300MB", ByteFloor(re.compile("attention"), 300e6)),
        ("byte-floor:x=2KiB", ByteFloor(re.compile("x"), 2048.0)),
        ("collective=0.5", Collectives(factor=0.5)),
        ("collective:alpha=10us,beta=200GB/s", Collectives(alpha_ns=10_000.0, bytes_per_s=200e9)),
        ("collective:alpha=1ms", Collectives(alpha_ns=1e6)),
        ("collective:beta=1TB/s", Collectives(bytes_per_s=1e12)),
    ],
)
def test_a_change_is_read(text: str, change: object) -> None:
    assert parse(text) == (change,)


def test_several_are_joined_by_plus_which_patterns_may_hold() -> None:
    assert parse("graph-capture+host=0.5") == (GraphCapture(), Host(CPU, 0.5))
    assert parse("kernel:a+b=0.5+no-sync") == (Kernels(re.compile("a+b"), 0.5), NoSync())


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ("faster", "is no change", "graph-capture, kernel:REGEX=0.5"),
        ("", "is no change", "known are"),
        ("host", "is no change", "host=0.8"),
        ("host=quick", "'quick' is not understood", "a factor such as 0.5"),
        ("host=-1", "'-1' is not understood", "a factor such as 0.5"),
        ("host=2us", "'2us' is not understood", "a factor such as 0.5"),
        ("kernel:(=0.5", "is no regular expression", r"put \ before each of"),
        ("kernel:a=", "'' is not understood", "a factor such as 0.5"),
        ("byte-floor:a=5s", "'5s' is not understood", "a size such as 300MB"),
        ("collective:gamma=5", "'gamma' is neither alpha nor beta", "collective:alpha=10us,beta=200GB/s"),
        ("collective:beta=0", "moves nothing", "what the links can do"),
        ("collective:alpha=5MB", "'5MB' is not understood", "a time such as 10us"),
    ],
)
def test_what_is_no_change_is_refused_with_the_next_step(text: str, says: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(text)
    assert says in refused.value.why
    assert hint in refused.value.hint


def test_every_form_that_is_shown_is_read() -> None:
    for form, _ in FORMS:
        assert len(parse(form)) == 1, form
