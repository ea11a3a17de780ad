"""Token logs on the command line: given, found beside the traces, and what is said where they are missing or wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyzer import pipeline
from fixtures.simulator.decode_loop import single_gpu
from fixtures.simulator.engine import simulate
from fixtures.simulator.kineto_writer import write_kineto
from tests.cli.conftest import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of twelve steps and a log of a token each."""
    folder = tmp_path_factory.mktemp("capture")
    trace = write_kineto(simulate(single_gpu()), folder)
    found = pipeline.analyze(pipeline.read(trace), own_changes=False).diagnosis
    zero = int(found.time_zero_ns or 0)
    ends = [zero + window.end_ns for window in found.ranks[0].windows]
    rows = [f"r,{at},{end + 400_000},{end + 900_000}" for at, end in enumerate(ends)]
    (folder / "tokens.csv").write_text(
        "request,token,server_emission_ns,client_receipt_ns\n" + "\n".join(rows)
    )
    lines = [
        {
            "kind": "header",
            "format": "tracebound.tokens",
            "format_version": 1,
            "host": "h",
            "url": "http://h:1",
        },
        {"kind": "request", "request": 0, "warmup": False, "sent_ns": ends[0] - 9_000_000},
    ]
    for at, end in enumerate(ends):
        times = {"request": 0, "read": at, "receipt_ns": end + 900_000}
        lines.append({"kind": "read", **times, "kernel_ns": end + 880_000})
        lines.append({"kind": "event", **times, "output": True, "tokens": 1, "emitted_ns": end + 400_000})
    lines += [{"kind": "end", "request": 0, "outcome": "complete"}, {"kind": "log_end"}]
    (folder / "rank0.tokens.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_the_client_boundary_end_to_end(folder: Path, tmp_path: Path) -> None:
    result = run(
        "diagnose", str(folder / "rank0.pt.trace.json"), "--token-log", str(folder / "tokens.csv"), "--token-clock",
        "server=trace, client=trace", "--boundary", "client", "--no-figures", "-o", str(tmp_path),
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    found = json.loads((tmp_path / "diagnosis" / "diagnosis.json").read_bytes())
    (budget,) = found["service"]["budget"]
    assert found["boundary"] == budget["scope"] == "client"
    assert sum(budget["path_ns_total"].values()) == budget["step_ns_total"]
    assert "client" in (tmp_path / "diagnosis" / "budget.csv").read_text()
    text = (tmp_path / "DIAGNOSIS.md").read_text()
    assert "### After the device" in text and "to the client's receipt" in text
    assert len((tmp_path / "diagnosis" / "service.csv").read_text().splitlines()) == 13


def test_a_clients_log_beside_the_traces_is_found_and_its_clock_is_nobodys(folder: Path) -> None:
    result = run("diagnose", str(folder), "--format", "json", "-q")
    assert result.exit_code == 0, result.stderr
    (log,) = json.loads(result.stdout)["service"]["logs"]
    assert (log["kind"], log["joined"], log["client_clock"]) == ("client", False, "h")
    assert "--token-clock server=trace" in log["why_not_joined"]
    named = run("diagnose", str(folder), "--token-clock", "server=trace", "--format", "json", "-q")
    (log,) = json.loads(named.stdout)["service"]["logs"]
    assert log["joined"] and log["tokens_joined"] == 12


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--boundary", "client"), "--token-log"),
        (("--token-clock", "server"), "is not WHO=CLOCK"),
        (("--token-clock", "server=trace"), "no token log whose clocks"),
        (("--token-clock", "proxy=trace"), "device, server, client"),
        (("--token-clock", "server=trace", "--token-clock", "server=other"), "clock of the server twice"),
        (("--token-log", "absent.csv"), "absent.csv"),
        (("--boundary", "moon"), "moon"),
    ],
)
def test_what_does_not_fit_is_said(folder: Path, tmp_path: Path, options: tuple[str, ...], told: str) -> None:
    result = run("diagnose", str(folder / "rank0.pt.trace.json"), *options, "-o", str(tmp_path / "out"))
    assert result.exit_code == 2 and told in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "command", [("compare", "a", "b"), ("sweep", "a"), ("scaling", "a"), ("whatif", "a")]
)
def test_commands_without_a_token_log_offer_no_client_boundary(command: tuple[str, ...]) -> None:
    result = run(*command, "--boundary", "client")
    assert result.exit_code == 2
    assert "'client' is not one of 'device', 'host'" in result.output.replace("\n", " ")
