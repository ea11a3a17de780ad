"""What the installed nsys can do: its version and the options it lists, asked of it. Versions differ in names.

Nothing here is decided by version numbers; an option is there if ``nsys profile --help`` lists it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from collectors.errors import CollectError

Listed = Mapping[str, frozenset[str]]
"""Options by their long names without dashes, each with the values that its help lists."""

ASK_LIMIT_S = 60.0
"""How long nsys may take to print its help."""
WHERE_TO_GET_IT = (
    "install Nsight Systems (part of the CUDA toolkit, or developer.nvidia.com/nsight-systems), "
    "or give the program's path with --nsys"
)
_IMPORTER = "QdstrmImporter"
_PLACES = ("/usr/lib/nsight-systems/host*", "/opt/nvidia/nsight-systems/*/host*")
_OPTION = re.compile(r"\s{1,12}(?:-\w,\s*)?--(?P<name>[a-z][\w|\[\]-]*?)(?:\[?=\S*)?\s*")
_VALUES = re.compile(r"Possible (?:values|formats) are\b(.*?)(?:\.\s|\.$|\Z)", re.S)
_WORD = re.compile(r"[A-Za-z][\w-]*")
_VERSION = re.compile(r"\b20\d\d\.\d+[\w.-]*")
_GPU = re.compile(r"\s*(\d+)\s*:")


@dataclass(frozen=True)
class Nsys:
    """One installation. ``importer`` makes a report of a raw stream; ``imports_itself``: nsys finds it without us.

    ``gpus``: those whose metrics it may sample, by its own numbers, asked only when wanted; ``gpus_why``: its words
    where there are none.
    """

    path: str
    version: str
    profile: Listed
    export: Listed
    imports_itself: bool = True
    importer: str | None = None
    gpus: tuple[int, ...] = ()
    gpus_why: str = ""

    def has(self, option: str, value: str | None = None) -> bool:
        """Whether ``nsys profile`` lists an option, and with it a value."""
        return option in self.profile and (value is None or value in self.profile[option])


def parse_help(text: str) -> dict[str, frozenset[str]]:
    """The options of a help text. A line of its own names an option; its values stand below in a sentence."""
    found: dict[str, frozenset[str]] = {}
    name, body = "", list[str]()
    for line in [*text.expandtabs(8).splitlines(), "        --end"]:
        match = _OPTION.fullmatch(line)
        if match is None:
            body.append(line)
            continue
        if name:
            found[name] = _values("\n".join(body))
        name, body = match["name"], []
    return found


def _values(body: str) -> frozenset[str]:
    return frozenset(word for part in _VALUES.findall(body) for word in _WORD.findall(part))


def parse_version(text: str) -> str | None:
    """``2022.4.2.1-df9881f`` of what ``nsys --version`` says."""
    match = _VERSION.search(text)
    return match[0] if match else None


def ask(program: str = "nsys", *, gpu_metrics: bool = False) -> Nsys:
    """Find nsys and ask it. Raises CollectError where there is none, or where it does not answer."""
    path = shutil.which(program)
    if path is None:
        raise CollectError(program, "is not installed, or not on PATH", WHERE_TO_GET_IT)
    version = parse_version(_said(path, "--version"))
    profile = parse_help(_said(path, "profile", "--help"))
    if version is None or "output" not in profile:
        raise CollectError(path, "does not answer like nsys of Nsight Systems", WHERE_TO_GET_IT)
    export = parse_help(_said(path, "export", "--help"))
    own, importer = find_importer(Path(path))
    gpus, why = _metric_gpus(path, profile) if gpu_metrics else ((), "")
    return Nsys(path, version, profile, export, own, importer, gpus, why)


def find_importer(nsys: Path, places: Iterable[str] = _PLACES) -> tuple[bool, str | None]:
    """Whether nsys finds its importer itself, and where one is.

    nsys looks beside its own folder. Some packages put the importer elsewhere; it still works when called directly.
    """
    own = f"{nsys.resolve().parent.parent}/host*"
    for place in (own, *places):
        pattern = f"{place.lstrip('/')}/{_IMPORTER}"
        usable = sorted(found for found in Path("/").glob(pattern) if os.access(found, os.X_OK))
        if usable:
            return place == own, str(usable[-1])
    return False, None


def _metric_gpus(path: str, profile: Listed) -> tuple[tuple[int, ...], str]:
    option = gpu_metrics_option(profile)
    if option is None:
        return (), "this version cannot sample them"
    said = _said(path, "profile", f"--{option}=help")
    gpus = tuple(int(match[1]) for line in said.splitlines() if (match := _GPU.match(line)))
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("Possible")]
    return gpus, "" if gpus else " ".join(lines)[:300] or "nsys lists no GPU"


def gpu_metrics_option(profile: Listed) -> str | None:
    """The option's name: singular up to 2023, plural later."""
    return next((name for name in ("gpu-metrics-devices", "gpu-metrics-device") if name in profile), None)


def _said(*command: str) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=ASK_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        why = f"did not answer `{' '.join(command[1:])}` within {ASK_LIMIT_S:g} s"
        raise CollectError(command[0], why, "run it by hand; install it anew if it hangs there too") from None
    except OSError as error:
        raise CollectError(command[0], f"cannot be started ({error.strerror})", WHERE_TO_GET_IT) from error
    return done.stdout.decode("utf-8", "replace")
