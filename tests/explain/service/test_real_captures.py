"""Real captures with a made token log: joined step by step, and every window a partition."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer import pipeline
from tests.shared import needs_shared, trace_path

CAPTURES = (
    "cs336-zx/gpt2_2.7B_cudagraph.sqlite",
    "cs336-zx/gpt2_2.7B_eager.sqlite",
    "hta-cp/alexnet.json.gz",
    "astra-megatron-tp8/megatron_kineto_0.json.gz",
    "fuser/nvfuser_h200.sqlite",
)


@needs_shared
@pytest.mark.parametrize("name", CAPTURES)
def test_a_log_of_a_real_capture_is_joined_or_says_why(name: str, tmp_path: Path) -> None:
    capture = pipeline.read([trace_path(name)])
    plain = pipeline.analyze(capture, own_changes=False).diagnosis
    windows = [window for window in plain.ranks[0].windows if not window.empty]
    zero = int(plain.time_zero_ns or 1_795_000_000_000_000_000)
    log = tmp_path / "tokens.csv"
    rows = [f"r,{at},{zero + w.end_ns + 5_000},{zero + w.end_ns + 90_000}" for at, w in enumerate(windows)]
    log.write_text("request,token,server_emission_ns,client_receipt_ns\n" + "\n".join(rows) + "\n")
    found = pipeline.analyze(
        capture, own_changes=False, token_logs=[log], token_clocks={"server": "trace", "client": "trace"}
    ).diagnosis
    service = found.service
    assert service is not None
    (read,) = service.logs
    if plain.time_zero_ns is None or len(windows) < 2:
        assert not read.joined and read.why_not_joined
        return
    assert read.joined and read.tokens_joined == len(windows)
    assert len(service.windows) == len(windows) - 1
    for window in service.windows:
        assert sum(window.path_ns.values()) == window.end_ns - window.start_ns
        assert window.path_ns["service.transport"] == 85_000
        assert window.path_ns["service.output"] == 5_000
