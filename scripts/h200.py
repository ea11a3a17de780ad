"""One prepared run on a GPU machine: what it is, how fast it copies, and captures of a small decoding model.

Usage: python scripts/h200.py FOLDER [--tiny] [--steps N] [--limit SECONDS]

Takes some minutes. Everything lands in FOLDER: ``h200.json`` (all figures and versions, rewritten after every part),
``eager/`` and ``graph/`` (traces of torch.profiler), ``nsys-*.sqlite`` (Nsight Systems: eager, graph as a whole,
graph by nodes). On a machine without CUDA the same model runs on the CPU in tiny sizes, and the JSON says so.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import platform
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from collectors.device.bounded import ask  # noqa: E402
from collectors.device.pins import pins  # noqa: E402
from collectors.errors import CollectError  # noqa: E402
from collectors.launch import run  # noqa: E402
from collectors.run_folder import write_whole  # noqa: E402

PARTS = Path(__file__).with_name("decode_parts.py")
NAME = "h200.json"
SEEN_ELSEWHERE: dict[str, Any] = {
    "bytes_per_s": 4.3e12,
    "note": "copies on another H200, read and written bytes; stands here to compare, nothing is computed from it",
}
GRAPH_TRACE = {"nsys-eager": "graph", "nsys-graph": "graph", "nsys-node": "node"}
TABLES = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "NVTX_EVENTS",
)


class Run:
    """The parts one after the other; ``found`` is what ``h200.json`` holds."""

    def __init__(self, folder: Path, *, tiny: bool, steps: int, limit_s: float) -> None:
        self.folder, self.limit_s = folder, limit_s
        self.options = ["--steps", str(steps), *(["--tiny"] if tiny else [])]
        self.found: dict[str, Any] = {"python": platform.python_version(), "options": self.options}
        self.failed: list[str] = []

    def say(self, text: str) -> None:
        """Progress."""
        sys.stdout.write(f"[{time.strftime('%H:%M:%S')}] {text}\n")
        sys.stdout.flush()

    def keep(self, name: str, value: Any) -> None:
        """Add a result and write all of them."""
        self.found[name] = value
        write_whole(self.folder / NAME, json.dumps(self.found, indent=1, allow_nan=False) + "\n")

    def part(self, name: str, prefix: list[str] | None = None) -> dict[str, Any]:
        """Run a part in a process of its own; what it found, or ``failed`` with the reason."""
        result = self.folder / "parts" / f"{name}.json"
        result.unlink(missing_ok=True)
        command = [*(prefix or []), sys.executable, str(PARTS), name, str(self.folder), *self.options]
        try:
            outcome = run(command, limit_s=self.limit_s)
        except CollectError as error:
            return self._failure(name, str(error))
        if outcome.timed_out:
            return self._failure(name, f"did not end within {self.limit_s:g} s")
        if outcome.exit_code != 0 or not result.exists():
            return self._failure(name, f"ended with exit code {outcome.exit_code}")
        found: dict[str, Any] = json.loads(result.read_text())
        return found

    def _failure(self, name: str, why: str) -> dict[str, Any]:
        self.failed.append(name)
        self.say(f"{name} {why}")
        return {"failed": why}

    def all(self) -> int:
        """Every part. Returns 1 where one failed, else 0."""
        self.say("asking NVML")
        device = ask()
        self.keep("device", device)
        self.keep("pins", {name: pin.value for name, pin in pins(device).items()})
        self.say("measuring copies")
        copies = self.part("copy")
        self.keep("torch", copies.get("facts"))
        self.keep("copy_bandwidth", copies.get("copy_bandwidth", copies))
        self.keep("copy_bandwidth_seen_elsewhere", SEEN_ELSEWHERE)
        cuda = bool((self.found["torch"] or {}).get("cuda"))
        self.keep(
            "ran_on", "CUDA" if cuda else "CPU in tiny sizes, CPU activities only: torch finds no CUDA device"
        )
        for mode in ("eager", "graph"):
            self.say(f"decoding, {mode}")
            self.keep(mode, self.part(mode))
        self.keep("same_tokens", _same_tokens(self.found["eager"], self.found["graph"]))
        self._nsys(cuda)
        self.keep("failed", self.failed)
        self._sum_up()
        return 1 if self.failed else 0

    def _nsys(self, cuda: bool) -> None:
        program = shutil.which("nsys")
        if program is None or not cuda:
            why = "torch finds no CUDA device" if program else "nsys is not on PATH"
            self.keep("nsys", {"absent": why})
            self.say(f"nothing under nsys: {why}")
            return
        told = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False)
        self.keep("nsys", {"version": told.stdout.strip() or None})
        for name, trace in GRAPH_TRACE.items():
            self.say(f"under nsys, {name}")
            self.keep(name, self._under_nsys(program, name, trace))

    def _under_nsys(self, program: str, name: str, trace: str) -> dict[str, Any]:
        stem = self.folder / name
        found = self.part(
            name,
            [
                program, "profile", "-t", "cuda,nvtx,osrt", "-s", "none", "--cpuctxsw=none", "-f", "true",
                "--capture-range=cudaProfilerApi", "--capture-range-end=stop", f"--cuda-graph-trace={trace}",
                "-o", str(stem),
            ],
        )  # fmt: skip
        report, database = stem.with_suffix(".nsys-rep"), stem.with_suffix(".sqlite")
        if "failed" in found:
            return found
        if not report.exists():
            return found | self._failure(name, "left no report")
        exporting = [program, "export", "-t", "sqlite", "-f", "true", "-o", str(database), str(report)]
        outcome = run(exporting, limit_s=self.limit_s)
        if outcome.exit_code != 0 or not database.exists():
            return found | self._failure(name, f"could not be exported (exit code {outcome.exit_code})")
        return found | {"path": database.name, "bytes": database.stat().st_size, "rows": rows(database)}

    def _sum_up(self) -> None:
        best = (self.found["copy_bandwidth"] or {}).get("bytes_per_s")
        shown = "not measured" if best is None else f"{best / 1e12:.2f} TB/s"
        self.say(
            f"copies: {shown} read and written (elsewhere, an H200: {SEEN_ELSEWHERE['bytes_per_s'] / 1e12} TB/s)"
        )
        for mode in ("eager", "graph"):
            part = self.found[mode]
            if "plain" in part:
                self.say(
                    f"{mode}: {part['plain']['median_ns'] / 1e3:.0f} us a step,"
                    f" {part['profiled']['median_ns'] / 1e3:.0f} us profiled (x {part['inflation']:.2f})"
                )
            else:
                self.say(f"{mode}: {part.get('absent') or part.get('failed')}")
        self.say(f"all figures: {self.folder / NAME}")


def rows(database: Path) -> dict[str, int | None]:
    """Rows by table; null for a table that the export does not have."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        there = {
            name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")
        }
        return {
            table: connection.execute(f"select count(*) from {table}").fetchone()[0]
            if table in there
            else None
            for table in TABLES
        }


def _same_tokens(eager: dict[str, Any], graph: dict[str, Any]) -> bool | None:
    """Whether both modes decoded the same; null where one of them did not run."""
    if "tokens" not in eager or "tokens" not in graph:
        return None
    same: bool = eager["tokens"] == graph["tokens"]
    return same


def main() -> int:
    """Run it all."""
    parser = argparse.ArgumentParser(
        description="Capture a small decoding model on this machine, with all figures that belong to it.",
        epilog="example: python scripts/h200.py /tmp/h200 --steps 30",
    )
    parser.add_argument("folder", type=Path, help="where everything goes; made where it is missing")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, also with CUDA: a rehearsal")
    parser.add_argument("--steps", type=int, default=30, metavar="N", help="steps per capture (default: 30)")
    parser.add_argument(
        "--limit", type=float, default=150.0, metavar="SECONDS", help="longest time per part (default: 150)"
    )
    given = parser.parse_args()
    if given.steps < 1:
        parser.error("--steps: pass a number above 0")
    if importlib.util.find_spec("torch") is None:
        parser.error("torch is not installed for this Python; next: start with one that has it")
    if (given.folder / NAME).exists():
        parser.error(f"{given.folder} holds a run already; next: pass another folder")
    given.folder.mkdir(parents=True, exist_ok=True)
    return Run(given.folder.resolve(), tiny=given.tiny, steps=given.steps, limit_s=given.limit).all()


if __name__ == "__main__":
    raise SystemExit(main())
