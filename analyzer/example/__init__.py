"""The example capture that ships with the package: a small decode loop, simulated.

Eight tensor-parallel ranks, eager and graph-captured, as torch.profiler traces, and a single GPU's eager
loop as an Nsight Systems export. Beside them what a diagnosis of the eager loop can be given: a byte ledger with
the checkpoint headers that it is made from, counters, a token log, and a sweep over the context. Made by
``fixtures/make_example.py``; no real machine ran it.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

_ENDINGS = (".json.gz", ".sqlite", ".json", ".safetensors", ".toml", ".csv")


def files() -> dict[str, bytes]:
    """The example's files by their name in the written folder, such as ``eager/rank0.pt.trace.json.gz``."""
    found = {
        entry.name.replace("-", "/", 1): entry.read_bytes()
        for entry in resources.files(__name__).iterdir()
        if entry.name.endswith(_ENDINGS)
    }
    return dict(sorted(found.items()))


def write(directory: Path) -> list[Path]:
    """Write the example below ``directory``, made where it is missing; the paths in order."""
    written = []
    for name, content in files().items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        written.append(path)
    return written
