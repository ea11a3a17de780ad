"""NVML asked with a time limit, so that a driver that hangs does not hang the engine.

A process of its own asks, not a thread: a call that hangs in the driver keeps its thread for good, and NVML's lock,
which the engine and NCCL need too, would stay taken. The library is not even loaded into the engine. A process can be
left behind.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from collectors.device.visible import VARIABLES

LIMIT_S = 10.0
"""The driver's first start on a node with eight devices and no persistence mode takes several seconds."""
_CODE = "from collectors.device.snapshot import main; raise SystemExit(main())"
_INJECTED = ("LD_PRELOAD", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")
"""How profilers get into a process. They have no business in this one."""


class Asking:
    """NVML is asked from now on; ``result`` waits for the answer."""

    def __init__(self, environment: Mapping[str, str] | None = None, limit_s: float = LIMIT_S) -> None:
        """``environment``: that of the rank, for what CUDA shows to it. ``limit_s`` counts from ``result`` on."""
        self._limit_s = limit_s
        self._process: subprocess.Popen[bytes] | None = None
        self._failure = ""
        try:
            # -S, -P: no site module, which engines' images may burden; the paths are handed over instead
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-P", "-c", _CODE],
                env=_environment(os.environ if environment is None else environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            self._failure = f"no process could be started to ask NVML ({error.strerror})"

    def result(self) -> dict[str, Any]:
        """The snapshot, or ``{"absent": reason}`` where the process failed or ran past the limit."""
        if self._process is None:
            return {"absent": self._failure}
        try:
            told, complaint = self._process.communicate(timeout=self._limit_s)
        except subprocess.TimeoutExpired:
            self.leave()
            return {"absent": f"NVML did not answer within {self._limit_s:g} s"}
        try:
            found = json.loads(told)
        except ValueError:
            last = complaint.decode("utf-8", "replace").strip().splitlines()[-1:]
            why = last[0] if last else f"exit code {self._process.returncode}"
            return {"absent": f"the process that asks NVML failed ({why})"}
        return found if isinstance(found, dict) else {"absent": "the process that asks NVML told no snapshot"}

    def leave(self) -> None:
        """End the process. One that hangs in the driver does not end; nobody waits for it."""
        if self._process is None:
            return
        self._process.kill()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            _LEFT.append(self._process)


_LEFT: list[subprocess.Popen[bytes]] = []
"""Processes that did not end. Held, since an object that goes away while its process runs makes Python warn."""


def ask(environment: Mapping[str, str] | None = None, limit_s: float = LIMIT_S) -> dict[str, Any]:
    """A snapshot with a time limit, or ``{"absent": reason}``."""
    return Asking(environment, limit_s).result()


class BeforeAndAfter:
    """The devices before a capture and after it. Asking begins at once, beside whatever the caller does."""

    def __init__(self, environment: Mapping[str, str] | None = None, limit_s: float = LIMIT_S) -> None:
        self._environment = environment
        self._limit_s = limit_s
        self._asking = Asking(environment, limit_s)
        self.record: dict[str, dict[str, Any] | None] = {"before": None, "after": None}

    def before(self) -> dict[str, Any]:
        """The first snapshot, waited for."""
        found = self._asking.result()
        self.record = {**self.record, "before": found}
        return found

    def after(self) -> dict[str, dict[str, Any] | None]:
        """Both snapshots. Where nobody answered before, nobody is asked again."""
        before = self.record["before"]
        if before is None or "absent" in before:
            found = {"absent": "not asked: there was no answer before"}
        else:
            found = ask(self._environment, self._limit_s)
        self.record = {**self.record, "after": found}
        return self.record

    def close(self) -> None:
        """End what still asks."""
        self._asking.leave()


def _environment(rank: Mapping[str, str]) -> dict[str, str]:
    """The environment of this process, with what CUDA shows to the rank, and with the same modules within reach."""
    own = {name: value for name, value in os.environ.items() if name not in (*_INJECTED, *VARIABLES)}
    paths = [str(Path(__file__).resolve().parents[2]), *(path for path in sys.path if path)]
    told = {name: rank[name] for name in VARIABLES if name in rank}
    return {**own, **told, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
