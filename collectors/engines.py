"""Which engine runs: told by what a process has imported or loaded, never by what is installed beside it."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Iterable

from collectors.manifest import Pin

ENGINES = {
    "vllm": "vllm",
    "sglang": "sglang",
    "tensorrt_llm": "tensorrt_llm",
    "transformers": "transformers",
    "megatron-core": "megatron.core",
    "deepspeed": "deepspeed",
    "torch": "torch",
}
"""Distributions whose version pins the runtime, the most specific first, and the module of each."""
_INSTALLED = re.compile(r"(?P<place>/.*/(?:site|dist)-packages)/(?P<file>.+)")


def imported() -> dict[str, Pin]:
    """The pin ``runtime`` by the modules that this process has imported; empty where it has none of an engine."""
    for distribution, module in ENGINES.items():
        if module in sys.modules:
            return _runtime(distribution, version(distribution))
    return {}


def loaded(paths: Iterable[str]) -> dict[str, Pin]:
    """The pin ``runtime`` by files that a process has mapped, as ``.../site-packages/torch/lib/libtorch_cpu.so``.

    The version is that of the installation that the file belongs to. Empty where no file is of an engine.
    """
    places: dict[str, str] = {}
    for path in paths:
        match = _INSTALLED.fullmatch(path)
        for distribution, module in ENGINES.items() if match else ():
            if match and match["file"].startswith(f"{module.replace('.', '/')}/"):
                places[distribution] = match["place"]
    for distribution in ENGINES:
        if distribution in places:
            return _runtime(distribution, version(distribution, [places[distribution]]))
    return {}


def version(distribution: str, places: list[str] | None = None) -> str | None:
    """Of a distribution that is installed here, or in one of ``places``; None where it is not."""
    try:
        if places is None:
            return importlib.metadata.version(distribution)
        found = importlib.metadata.distributions(name=distribution, path=places)
        return next((one.version for one in found), None)
    except importlib.metadata.PackageNotFoundError:
        return None


def _runtime(distribution: str, found: str | None) -> dict[str, Pin]:
    return {} if found is None else {"runtime": Pin(f"{distribution} {found}", "found")}
