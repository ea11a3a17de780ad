"""The section after the device, on a literal service: 2 gaps of 10 ms, of which 6 ms are the device's."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from analyzer.analysis import Analysis
from analyzer.diagnosis import Budget, ClientWindow, ClockPair, GapPart, Service, Stage, TokenLogRead
from analyzer.report import outputs
from analyzer.report.figures import OF_TOKENS, figures
from analyzer.report.markdown import render
from analyzer.report.service import after_device
from analyzer.tables import NO_EVENT, TokenTable
from tests.report import builder

MS = 1_000_000
PARTS = {"device": 12, "output": 4, "transport": 3, "buffering": 1, "unsplit": 0}


def log(**changes: Any) -> TokenLogRead:
    values: dict[str, Any] = {
        "path": "tokens.csv", "kind": "csv", "partial": False, "requests": 1, "tokens": 3, "device_clock": None,
        "server_clock": "node0", "client_clock": "load-gen", "emission_resolution_ns": 1, "joined": True,
        "why_not_joined": "", "assignment": "fit", "tokens_joined": 3, "tokens_outside": 0, "tokens_ambiguous": 0,
        "completion_difference_ns": None,
    }  # fmt: skip
    return TokenLogRead(**{**values, **changes})


def pair(**changes: Any) -> ClockPair:
    values: dict[str, Any] = {
        "log": "tokens.csv", "earlier": "server emission", "later": "client receipt", "one_clock": False,
        "why_not": "they are clocks of different hosts", "pairs": 3, "smallest_ns": 900 * MS,
        "interval_ns": (-20 * MS, 900 * MS), "drift_ppb": 0, "drift_doubt_ns": 0, "early": 0,
    }  # fmt: skip
    return ClockPair(**{**values, **changes})


def service(**changes: Any) -> Service:
    window = ClientWindow(
        index=1, step="decode", phase="decode", start_ns=0, end_ns=10 * MS, tokens=1, warmup=False, outlier=False,
        path_ns=builder.path(kernel=6 * MS, service_output=2 * MS, service_transport=2 * MS), inferred_ns=0,
        after_device_ns=4 * MS, unsplit_ns=0, under_later_steps_ns=3 * MS, recorded_work_ns=9 * MS,
    )  # fmt: skip
    budget = Budget(
        phase="decode", scope="client", rank=0, windows=1, windows_excluded=0, step_ns_total=10 * MS,
        path_ns_total=window.path_ns, exposed_ns_total=None, inferred_ns_total=0, note="",
    )  # fmt: skip
    values: dict[str, Any] = {
        "scope": "rank", "rank": 0, "logs": [log()], "clocks": [pair()], "gaps": 2, "gap_ns_total": 20 * MS,
        "gap_median_ns": 10 * MS, "gap_p95_ns": 10 * MS, "windows": [window], "budget": [budget],
        "stages": [Stage(name="transport", count=3, mean_ns=MS, mean_interval_ns=(MS // 2, 2 * MS), median_ns=MS,
                         p95_ns=2 * MS, above_smallest=True)],
        "parts": [GapPart(name=name, total_ns=ns * MS, median_ns=ns * MS // 2, p95_ns=ns * MS,
                          mean_interval_ns=(0, ns * MS)) for name, ns in PARTS.items()],
    }  # fmt: skip
    return Service(**{**values, **changes})


def tokens() -> TokenTable:
    at = np.array([0, 10, 20], np.int64) * MS
    part = np.array([[-1] * 5, [6 * MS, 2 * MS, MS, MS, 0], [6 * MS, 2 * MS, 2 * MS, 0, 0]], np.int64)
    return TokenTable(
        log=np.zeros(3, np.int32), request=np.zeros(3, np.int32), token=np.arange(3), window=np.array([-1, 1, 2]),
        completion_ns=np.array([NO_EVENT, 6 * MS, 16 * MS]), held_ns=np.array([NO_EVENT, 6 * MS, 16 * MS]),
        emission_ns=at - 2 * MS, last_emission_ns=at - 2 * MS, arrival_ns=at - MS, receipt_ns=at,
        buffering_ns=np.array([MS, MS, MS]), gap_ns=np.array([-1, 10 * MS, 10 * MS]), part_ns=part,
        logs=("=evil|`log`",), requests=("r\n1",), zero_ns=(1_795 * 10**15,),
    )  # fmt: skip


def diagnosed(**changes: Any) -> Analysis:
    found = builder.diagnosis(service=service(**changes))
    return Analysis(found, None, tokens=tokens())


def test_the_parts_of_the_gap_add_up_as_shown() -> None:
    view = after_device(diagnosed().diagnosis)
    assert view is not None
    assert "waits 10.000 ms between two tokens" in view.intro and "3 tokens of 1 request" in view.intro
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in view.gaps.splitlines()[2:]]
    assert [(row[0], row[2], row[6]) for row in rows] == [
        ("device", "6.000", "60.0 %"), ("output", "2.000", "20.0 %"), ("transport", "1.500", "15.0 %"),
        ("buffering", "0.500", "5.0 %"), ("**sum**", "10.000", "100.0 %"),
    ]  # fmt: skip
    assert "40.0 %" in view.windows and "75.0 %" in view.windows
    assert "above the smallest one" in view.stages


def test_an_offset_is_told_as_one_and_as_attributed_to_nothing() -> None:
    view = after_device(diagnosed().diagnosis)
    assert view is not None
    (line,) = [line for line in view.sentences if "clock offset" in line]
    assert "**clock offset or constant delay, not told apart**" in line and "attributed to nothing" in line
    assert "an offset of -20.000 to 900.000 ms" in line
    drifting = after_device(diagnosed(clocks=[pair(drift_ppb=52_300, drift_doubt_ns=MS)]).diagnosis)
    assert drifting is not None and "52.300 ppm" in str(drifting.sentences)
    one = after_device(
        diagnosed(clocks=[pair(one_clock=True, why_not="", smallest_ns=MS, early=1)]).diagnosis
    )
    assert one is not None and "one clock, smallest difference 1.000 ms; 1 of 3 lie before" in str(
        one.sentences
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"joined": False, "why_not_joined": "the capture does not know its wall-clock time"}, "not joined with the"),
        ({"assignment": "latest"}, "by emission, from the last step"),
        ({"assignment": "latest"}, "assumed, a delay longer by whole steps"),
        ({"assignment": "fit", "assigned_by": "client receipt"}, "by receipt, and no other delay"),
        ({"receipt_resolution_ns": MS}, "its receipts are logged to 1.000 ms"),
        ({"tokens_outside": 2, "tokens_ambiguous": 1}, "2 are of steps outside the capture; 1 could not be given"),
        ({"assignment": "completion", "completion_difference_ns": -MS}, "1.000 ms before the capture's"),
        ({"path": "a`|<b>"}, "U+0060"),
    ],
)  # fmt: skip
def test_how_a_log_was_joined_is_said(changes: dict[str, Any], told: str) -> None:
    view = after_device(diagnosed(logs=[log(**changes)]).diagnosis)
    assert view is not None and told in view.sentences[0]


def test_without_a_log_there_is_no_section_and_no_figure() -> None:
    plain = builder.diagnosis()
    assert after_device(plain) is None and "After the device" not in render(plain)
    assert "token_gaps" not in str(figures(Analysis(plain, None)).not_drawn)


def test_without_a_gap_it_is_said() -> None:
    view = after_device(
        diagnosed(gaps=0, gap_ns_total=0, parts=[], stages=[], windows=[], budget=[]).diagnosis
    )
    assert view is not None and view.gaps == view.stages == view.windows == ""
    assert "No two receipts" in view.intro


def test_the_client_boundary_leads_the_report() -> None:
    found = builder.diagnosis(boundary="client", service=service())
    text = render(found)
    first = text.splitlines()[2]
    assert "to the client's receipt: **10.000 ms per step**" in first
    assert "% of the device's step" in first  # the other shares are of another step than this one
    titles = [line for line in text.splitlines() if line.startswith("### 1. ")]
    assert titles and "of the device's step" in titles[0]
    assert "### 1. " in render(builder.diagnosis()) and "device's step" not in render(builder.diagnosis())
    assert "a step ends when the client has its output" in text
    assert text.index("service.output") < text.index("### After the device")


def test_tables_and_figure_are_written(tmp_path: Path) -> None:
    analysis = diagnosed()
    outputs.write(analysis, tmp_path)
    lines = (tmp_path / "diagnosis" / "service.csv").read_text().splitlines()
    assert len(lines) == 4
    head, first, second = (line.split(",") for line in lines[:3])
    row = dict(zip(head, first, strict=True))
    assert (row["window"], row["completion_ns"], row["gap_ns"], row["gap_ns.device"]) == ("", "", "", "")
    assert row["request"] == "r⟨U+000A⟩1"
    row = dict(zip(head, second, strict=True))
    assert sum(int(row[f"gap_ns.{name}"]) for name in PARTS) == int(row["gap_ns"]) == 10 * MS
    windows = (tmp_path / "diagnosis" / "client_windows.csv").read_text().splitlines()
    cells = dict(zip(windows[0].split(","), windows[1].split(","), strict=True))
    assert sum(int(ns) for name, ns in cells.items() if name.startswith("path_ns.")) == 10 * MS
    with Image.open(tmp_path / "diagnosis" / "figures" / "token_gaps.png") as image:
        assert image.size[0] == 1_440
    outputs.write(Analysis(builder.diagnosis(), None), tmp_path)  # an earlier run's figure goes
    assert not (tmp_path / "diagnosis" / "figures" / "token_gaps.png").exists()


def test_the_figure_is_the_same_for_the_same_tokens() -> None:
    one, other = (
        {drawn.name: drawn.svg for drawn in figures(diagnosed()).drawn}[OF_TOKENS[0]] for _ in range(2)
    )
    assert one == other
    (drawn,) = [drawn for drawn in figures(diagnosed()).drawn if drawn.name == OF_TOKENS[0]]
    assert Image.open(io.BytesIO(drawn.png)).size[0] == 1_440 and len(drawn.alt_text) > 60


def test_json_survives_a_round_trip() -> None:
    analysis = diagnosed()
    data = analysis.to_json()
    again = Analysis.from_json(data)
    assert again.diagnosis.service == analysis.diagnosis.service
    assert again.to_json() == data
