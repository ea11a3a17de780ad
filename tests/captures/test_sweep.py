"""Real captures of different engines are no grid: what ties them is missing, and the sweep says so."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import run
from tests.shared import needs_shared, trace_path

DECODES = ("tracelens-vllm/vllm_decode_fullgraph.json.gz", "tracelens-sglang/sglang_qwen3_8b_decode.json.gz")


@needs_shared
def test_undeclared_captures_of_two_engines_give_no_slope(tmp_path: Path) -> None:
    grid = tmp_path / "grid.csv"
    rows = [f"{trace_path(name)},{context}" for name, context in zip(DECODES, (2_048, 4_096), strict=True)]
    grid.write_text("\n".join(["run,context", *rows]) + "\n")
    result = run("sweep", "--grid", str(grid), "-o", str(tmp_path), "--no-figures", "-q")
    assert result.exit_code == 0, result.stderr
    assert "CACHE INITIALIZATION UNDECLARED of all 2 cells" in result.stderr
    found = json.loads((tmp_path / "sweep" / "sweep.json").read_bytes())
    assert [line["finding"] for line in found["lines"] if line["axis"] == "context"] == ["two points"]
    assert found["kv_context"]["verdict"] in ("inconclusive", "unmeasured")
    assert {"model", "precision", "weights"} <= {*found["undeclared"]}
    assert all(abs(sum(one["mean_ns"].values()) - one["step_ns"]["value"]) < 1e-3 for one in found["cells"])
