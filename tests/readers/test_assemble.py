from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analyzer.errors import TraceError, UsageError
from analyzer.model import CollectiveInfo, Trace
from analyzer.readers.assemble import assemble, rank_in_name
from tests.readers.kineto_json.builder import kernel, text_of, traces
from tests.shared import case_path, needs_shared


@pytest.fixture
def base(tmp_path: Path) -> Trace:
    return traces(tmp_path, text_of([kernel("k", 1, 1)]))[0]


def files(base: Trace, *specs: tuple[str, Any]) -> list[list[Trace]]:
    """One file per (path, ranks): the recorded rank of each of its traces."""
    return [
        [
            replace(base, rank=rank, source=replace(base.source, path=path))
            for rank in (ranks if isinstance(ranks, list) else [ranks])
        ]
        for path, ranks in specs
    ]


def order(capture: Any) -> list[tuple[str, int]]:
    return [(trace.source.path, rank) for trace, rank in zip(capture.traces, capture.ranks, strict=True)]


def test_recorded_ranks_come_in_numeric_order(base: Trace) -> None:
    capture = assemble(files(base, ("x", 10), ("y", 2), ("z", 0)))
    assert order(capture) == [("z", 0), ("y", 2), ("x", 10)]
    assert capture.rank_basis == "the rank that each file records"
    assert capture.quality == ()


def test_file_names_tell_where_files_do_not(base: Trace) -> None:
    capture = assemble(files(base, ("host_rank_12.json", None), ("host_rank_3.json", None)))
    assert capture.ranks == (3, 12)
    assert capture.rank_basis == "the file names"


def test_the_option_wins_over_everything(base: Trace) -> None:
    given = files(base, ("rank0/node7.json", 0), ("rank1/node5.json", 0))
    assert order(assemble(given, r"node(\d+)")) == [("rank1/node5.json", 5), ("rank0/node7.json", 7)]
    assert assemble(given, r"rank(?P<rank>\d+)").ranks == (0, 1)
    assert assemble(given, r"\d+").ranks == (5, 7)


def test_order_numbers_what_nothing_tells_and_says_so(base: Trace) -> None:
    capture = assemble(files(base, ("run10", None), ("run9", None)))
    assert order(capture) == [("run9", 0), ("run10", 1)]
    assert "order" in capture.rank_basis
    assert [(entry.reason, entry.count) for entry in capture.quality] == [("rank-by-order", 2)]
    assert capture.missing_ranks == ()


def test_one_file_without_a_rank_is_rank_zero_without_a_complaint(base: Trace) -> None:
    capture = assemble(files(base, ("run", None)))
    assert (capture.ranks, capture.quality) == ((0,), ())


def test_the_order_in_which_files_are_given_changes_nothing(base: Trace) -> None:
    given = files(base, ("b", None), ("a", None), ("c", [None, None]))
    assert order(assemble(given)) == order(assemble(given[::-1]))


def test_several_devices_of_a_process_are_numbered_by_order(base: Trace) -> None:
    capture = assemble(files(base, ("x", [1, 1]), ("y", [0, 0])))
    assert order(capture) == [("y", 0), ("y", 1), ("x", 2), ("x", 3)]
    assert "several devices" in capture.rank_basis


def test_several_ranks_that_one_file_records_are_taken(base: Trace) -> None:
    assert assemble(files(base, ("rank9.sqlite", [3, 2]))).ranks == (2, 3)


def test_unknown_ones_fill_the_free_numbers(base: Trace) -> None:
    capture = assemble(files(base, ("a", 1), ("b", None), ("c", None)))
    assert order(capture) == [("b", 0), ("a", 1), ("c", 2)]
    assert capture.quality[0].count == 2


def test_two_files_of_one_rank_are_refused_by_name(base: Trace) -> None:
    with pytest.raises(TraceError, match=r"hostB.*rank 0.*hostA") as caught:
        assemble(files(base, ("hostA", 0), ("hostB", 0)))
    assert "--rank-regex" in caught.value.hint


@needs_shared
def test_b17_two_files_of_one_rank() -> None:
    from analyzer.readers.registry import read_file

    given = [read_file(case_path(f"B17.host{x}.json")) for x in "AB"]
    with pytest.raises(TraceError, match=r"hostB\.json.*hostA\.json"):
        assemble(given)
    with pytest.raises(UsageError, match="does not match"):
        assemble(given, r"rank(\d)")


@needs_shared
def test_b18_a_missing_rank_is_listed() -> None:
    from analyzer.readers.registry import read_file

    capture = assemble([read_file(case_path(f"B18.rank{r}.json")) for r in (3, 0, 1)])
    assert capture.ranks == (0, 1, 3)
    assert capture.missing_ranks == (2,)


def test_process_groups_tell_of_missing_ranks_too(base: Trace) -> None:
    info = CollectiveInfo("allreduce", None, None, None, "0", None, 3, (0, 4, 8), None)
    capture = assemble([[replace(base, rank=4, collectives=(info,))]])
    assert capture.missing_ranks == (0, 8)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "no regular expression"),
        ("(x)|rank", "no number"),
        ("nope", "does not match"),
        (r"ra(nk)", "no number"),
    ],
)
def test_patterns_that_cannot_be_used(base: Trace, pattern: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        assemble(files(base, ("rank0", 0)), pattern)


def test_a_pattern_cannot_number_a_file_of_several_ranks(base: Trace) -> None:
    with pytest.raises(UsageError, match=r"holds 2 \(process, device\) pairs"):
        assemble(files(base, ("rank0", [0, 1])), r"\d+")


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("rank0.json", 0),
        ("trace_rank_10.json.gz", 10),
        ("rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", 34),
        ("1700000000-TP-0.trace.json.gz", 0),
        ("TP-3-DP-1.json", 3),
        ("graph_capture_rank_0.1773709742341309550.pt.trace.json.gz", 0),
        ("out/rank7/trace.json", 7),
        ("dp0_pp0_tp0_dcp0_ep0_rank5.1767.pt.trace.json.gz", 5),
        ("ip-172-31-16-248.us-east-2.compute.internal_24049.1698955364380200319.pt.trace.json", None),
        ("crank7.json", None),
        ("rank0_vs_rank1.json", None),
        ("frank1/x.json", None),
        ("http8.json", None),
    ],
)
def test_ranks_in_names(path: str, rank: int | None) -> None:
    assert rank_in_name(path) == rank
