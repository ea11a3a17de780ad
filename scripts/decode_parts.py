"""Parts of ``h200.py`` that need torch. Each runs in a process of its own, so that one that fails spoils no other.

Usage: python scripts/decode_parts.py PART FOLDER [--tiny]     (h200.py does this)
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from decode_model import FULL, TINY, Decoder  # noqa: E402

from collectors.device.copy_bandwidth import copy_bandwidth  # noqa: E402
from collectors.run_folder import write_whole  # noqa: E402

STEPS, WARM_UP = 30, 10
WAIT, PROFILER_WARM_UP = 3, 3
NO_CUDA = "torch finds no CUDA device"
LAUNCH_NAMES = ("cudaLaunchKernel", "cuLaunchKernel")
GRAPH_NAME = "cudaGraphLaunch"


class Stepped(Protocol):
    """A profiler that is told where steps end."""

    def step(self) -> None:
        """A step has ended."""


def facts() -> dict[str, Any]:
    """What torch is and finds here."""
    cuda = torch.cuda.is_available()
    return {
        "torch": torch.__version__,
        "torch_cuda": torch.version.cuda,
        "cuda": cuda,
        "device": torch.cuda.get_device_name() if cuda else None,
        "capability": "{}.{}".format(*torch.cuda.get_device_capability()) if cuda else None,
    }


def timed(
    decoder: Decoder, count: int, after: Callable[[], None] | None = None
) -> tuple[list[int], list[int]]:
    """Nanoseconds per step until the host has the token, and the tokens. ``after`` each step, not timed."""
    times, tokens = [], []
    for _ in range(count):
        began = time.perf_counter_ns()
        tokens.append(decoder.step())
        times.append(time.perf_counter_ns() - began)
        if after is not None:
            after()
    return times, tokens


def summed_up(times: list[int]) -> dict[str, int]:
    """Steps, median, least and most, ns."""
    return {
        "steps": len(times),
        "median_ns": round(median(times)),
        "least_ns": min(times),
        "most_ns": max(times),
    }


@contextlib.contextmanager
def profiled(folder: Path, active: int) -> Iterator[tuple[Stepped, str]]:
    """The profiler around steps, and its name: our collector where this tree has it, else torch's own."""
    try:
        from collectors.torch_profiler import capture
    except ImportError:
        with _torch_profiler(folder, active) as profiler:
            yield profiler, "torch.profiler"
        return
    with capture(folder, wait=WAIT, warmup=PROFILER_WARM_UP, active=active) as window:
        yield window, "collectors.torch_profiler"


def _torch_profiler(folder: Path, active: int) -> Any:
    from torch._C._profiler import _ExperimentalConfig
    from torch.profiler import ProfilerActivity, profile, schedule

    folder.mkdir(parents=True, exist_ok=True)
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    return profile(
        activities=activities,
        schedule=schedule(wait=WAIT, warmup=PROFILER_WARM_UP, active=active, repeat=1),
        on_trace_ready=lambda ready: ready.export_chrome_trace(str(folder / "rank0.pt.trace.json.gz")),
        experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True),
    )


def decoder_of(tiny: bool, graph: bool) -> Decoder:
    """The model, warmed up, captured where asked."""
    cuda = torch.cuda.is_available()
    if not cuda:
        torch.set_num_threads(
            1
        )  # threads that wait for one another on few cores would be all that is measured
    decoder = Decoder(TINY if tiny or not cuda else FULL, "cuda" if cuda else "cpu")
    decoder.settle(WARM_UP)
    if graph:
        decoder.capture()
    timed(decoder, WARM_UP)
    return decoder


def decode(folder: Path, mode: str, tiny: bool, steps: int) -> dict[str, Any]:
    """The same steps without and with the profiler; the trace stands in ``folder/MODE``."""
    if mode == "graph" and not torch.cuda.is_available():
        return {"absent": NO_CUDA}
    decoder = decoder_of(tiny, mode == "graph")
    plain, tokens = timed(decoder, steps)
    with profiled(folder / mode, steps) as (profiler, name):
        times, more = timed(decoder, WAIT + PROFILER_WARM_UP + steps, profiler.step)
    inside = times[-steps:]
    return {
        "mode": mode,
        "sizes": asdict(decoder.sizes),
        "dtype": str(decoder.embedding.dtype),
        "cpu_threads": torch.get_num_threads(),
        "weights_bytes": decoder.weights_bytes(),
        "cache_bytes": decoder.cache_bytes(),
        "profiler": name,
        "plain": summed_up(plain),
        "profiled": summed_up(inside),
        "inflation": median(inside) / median(plain),
        "tokens": tokens + more,
        "traces": [counted(path, folder, steps) for path in traces(folder / mode)],
    }


def traces(folder: Path) -> list[Path]:
    """The traces that a profiler wrote."""
    return sorted(folder.rglob("*.trace.json.gz"))


def counted(path: Path, folder: Path, steps: int) -> dict[str, Any]:
    """A trace's size and its events by category. Per step: null where the trace holds no CUDA events."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    by_category = Counter(event["cat"] for event in events if "cat" in event and event.get("ph") == "X")
    names = Counter(event["name"] for event in events if event.get("cat") in ("cuda_runtime", "cuda_driver"))
    launches = sum(count for name, count in names.items() if name.startswith(LAUNCH_NAMES))
    cuda = bool(names)
    return {
        "path": str(path.relative_to(folder)),
        "bytes": path.stat().st_size,
        "events": dict(sorted(by_category.items())),
        "marked_steps": sum(event.get("name", "").startswith("ProfilerStep#") and event.get("ph") == "X"
                            and event.get("cat") == "user_annotation" for event in events),
        "launches_per_step": launches / steps if cuda else None,
        "graph_launches_per_step": names[GRAPH_NAME] / steps if cuda else None,
        "kernels_per_step": by_category["kernel"] / steps if cuda else None,
    }  # fmt: skip


def under_nsys(mode: str, tiny: bool, steps: int) -> dict[str, Any]:
    """Steps as ranges, between start and stop of CUDA's profiler interface; nsys stands around this process."""
    decoder = decoder_of(tiny, mode == "graph")
    profiler: Any = torch.cuda.profiler
    profiler.start()
    times = []
    for number in range(steps):
        began = time.perf_counter_ns()
        with torch.cuda.nvtx.range(f"decode_step {number}"):
            decoder.step()
        times.append(time.perf_counter_ns() - began)
    profiler.stop()
    return {"profiled": summed_up(times)}


def main() -> int:
    """Run one part and write what it found to ``FOLDER/parts/PART.json``."""
    parser = argparse.ArgumentParser(description="One part of h200.py.")
    parser.add_argument("part", choices=["copy", "eager", "graph", "nsys-eager", "nsys-graph", "nsys-node"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args()
    found: dict[str, Any]
    with torch.inference_mode():
        if given.part == "copy":
            found = {"facts": facts(), "copy_bandwidth": asdict(copy_bandwidth())}
        elif given.part.startswith("nsys-"):
            found = under_nsys("eager" if given.part == "nsys-eager" else "graph", given.tiny, given.steps)
        else:
            found = decode(given.folder, given.part, given.tiny, given.steps)
    (given.folder / "parts").mkdir(parents=True, exist_ok=True)
    write_whole(given.folder / "parts" / f"{given.part}.json", json.dumps(found, allow_nan=False) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
