"""Which engine runs is told by what was imported or loaded, not by what is installed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from collectors import engines
from collectors.manifest import Pin
from collectors.nsys.processes import installed_files
from collectors.session import found_pins


def installed(folder: Path, name: str, version: str) -> Path:
    """An environment with a distribution in it; returns its folder of packages."""
    place = folder / "lib" / "python3.11" / "site-packages"
    told = place / f"{name}-{version}.dist-info" / "METADATA"
    told.parent.mkdir(parents=True)
    told.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return place


def test_only_what_is_imported_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "version", lambda name: "1.0")
    for module in engines.ENGINES.values():
        monkeypatch.delitem(sys.modules, module, raising=False)
    assert engines.imported() == {}
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    assert engines.imported() == {"runtime": Pin("torch 1.0", "found")}
    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))
    assert engines.imported() == {"runtime": Pin("vllm 1.0", "found")}


def test_a_loaded_file_tells_the_engine_and_the_version_of_its_own_environment(tmp_path: Path) -> None:
    place = installed(tmp_path, "torch", "0.0.7")
    library = f"{place}/torch/lib/libtorch_cpu.so"
    assert engines.loaded([library, "/usr/lib/libc.so.6"]) == {"runtime": Pin("torch 0.0.7", "found")}
    installed(tmp_path / "other", "vllm", "0.13")
    more = f"{tmp_path}/other/lib/python3.11/site-packages/vllm/_C.abi3.so"
    assert engines.loaded([library, more]) == {"runtime": Pin("vllm 0.13", "found")}


@pytest.mark.parametrize(
    "path", ["/usr/lib/libtorch_cpu.so", "/x/site-packages/torchvision/_C.so", "/x/site-packages/torch/a.so"]
)
def test_what_belongs_to_no_installed_engine_tells_nothing(path: str) -> None:
    assert engines.loaded([path]) == {}


def test_files_of_packages_are_seen_in_a_process() -> None:
    assert installed_files([os.getpid(), 2**22]) == {
        line[line.find("/") :].rstrip("\n")
        for line in Path("/proc/self/maps").read_text().splitlines()
        if "-packages/" in line
    }


def test_a_command_line_pins_its_options_and_no_runtime() -> None:
    assert found_pins(["/usr/bin/python", "a.py"]) == {"flags": Pin("python a.py", "found")}
