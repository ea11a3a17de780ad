"""What NVML says: gathered field by field, asked with a time limit, told in a run's record.

Machines without a GPU test the absent ways for real. How answers are gathered is tested against a literal stand-in
for the module pynvml (``fake_nvml``), since there is no device to ask; it tells nothing of a real driver.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collectors import manifest
from collectors.cli import main
from collectors.device import reader
from collectors.device.bounded import Asking, BeforeAndAfter, ask
from collectors.device.command import put_into
from collectors.device.copy_bandwidth import copy_bandwidth, summed_up
from collectors.device.host import members, program
from collectors.device.links import shown
from collectors.device.pins import pins
from collectors.device.short import in_short
from collectors.device.snapshot import gather, snapshot
from collectors.errors import CollectError
from collectors.manifest import Pin, RankRecord
from collectors.run_folder import RunFolder
from collectors.session import Session
from tests.collectors import fake_nvml
from tests.collectors.fake_nvml import error, h200, linked_with, node, sliced

WITH_PYNVML = pytest.mark.skipif(
    importlib.util.find_spec("pynvml") is None,
    reason="pynvml is not installed here (pip install nvidia-ml-py)",
)


def plain(value: Any) -> Any:
    """What JSON makes of it, refusing what strict JSON has no word for."""
    return json.loads(json.dumps(value, allow_nan=False))


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from leaves(inner, f"{place}[{at}]")
    else:
        yield place, value


# -- one device -------------------------------------------------------------------------------------


def test_a_device_is_told_in_full() -> None:
    nvml = node(h200())
    found = gather(nvml, {})
    assert found == plain(found)
    assert (found["driver_version"], found["cuda_driver_version"]) == ("580.65.06", "13.0")
    assert found["not_read"] == {}
    (device,) = found["devices"]
    links = device.pop("nvlinks")
    assert device == {
        "index": 0,
        "uuid": "GPU-08f7a0e2-1111-2222-3333-444455556666",
        "name": "NVIDIA H200",
        "pci_bus_id": "00000000:1b:00.0",
        "compute_capability": "9.0",
        "memory": {"total_bytes": 143771 << 20, "used_bytes": 521 << 20, "reserved_bytes": 500 << 20},
        "clocks": {
            "sm_now_mhz": 345,
            "sm_max_mhz": 1980,
            "sm_application_mhz": 1980,
            "memory_now_mhz": 3201,
            "memory_max_mhz": 3201,
            "memory_application_mhz": 3201,
            "event_reasons": ["idle"],
        },
        "power": {"draw_w": 76.543, "limit_w": 700.0, "default_limit_w": 700.0, "temperature_c": 31},
        "performance_state": "P0",
        "persistence_mode": "on",
        "compute_mode": "default",
        "ecc": {
            "mode": "on",
            "mode_after_reset": "on",
            "corrected": 0,
            "uncorrected": 2,
            "corrected_lifetime": 1,
            "uncorrected_lifetime": 3,
        },
        "mig": {"mode": "off", "mode_after_reset": "off", "instances": []},
        "pcie": {"generation": 5, "generation_max": 5, "width": 16, "width_max": 16},
        "cpus": "0-47,80-111",
        "numa_nodes": "0",
        "processes": [{"pid": 4242, "name": "python3", "used_bytes": 1 << 30}],
        "lost": False,
        "not_read": {},
    }
    assert len(links) == 18
    assert links[17] == {
        "link": 17,
        "up": True,
        "version": 7,
        "remote": "switch",
        "remote_pci_bus_id": "00000000:c1:00.0",
    }
    assert nvml.shutdowns == 1


def test_what_a_device_does_not_support_is_null_and_named() -> None:
    """The stand-in answers NOT_SUPPORTED to everything: no zero, no empty list, no guess."""
    found = plain(gather(node({}), {}))
    (device,) = found["devices"]
    not_read = device.pop("not_read")
    told = {place: value for place, value in leaves(device) if value is not None}
    assert told == {"index": 0, "lost": False}
    assert set(not_read.values()) == {"not supported"}
    names = [place for place, _ in leaves(device) if place not in ("index", "lost")]
    for name in names:  # ``mig.instances`` by ``mig.mode``, both by one question
        asked = name.replace("_after_reset", "").replace("mig.instances", "mig.mode")
        assert asked in not_read, name
    assert pins(found) == {"topology": Pin("one device", "found")}


@pytest.mark.parametrize(
    ("call", "places"),
    [
        ("nvmlDeviceGetName", ["name"]),
        ("nvmlDeviceGetMemoryInfo", ["memory"]),
        ("nvmlDeviceGetPowerUsage", ["power.draw_w"]),
        ("nvmlDeviceGetTotalEccErrors", ["ecc.corrected", "ecc.uncorrected"]),
        ("nvmlDeviceGetNvLinkState", ["nvlinks"]),
        ("nvmlDeviceGetNvLinkRemoteDeviceType", ["nvlinks[3].remote"]),
        ("nvmlDeviceGetCpuAffinity", ["cpus"]),
        ("nvmlDeviceGetComputeRunningProcesses", ["processes"]),
    ],
)
@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (fake_nvml.NO_PERMISSION, "no permission"),
        (fake_nvml.FUNCTION_NOT_FOUND, "not in this driver"),
        (999, "NVML says: error 999"),
    ],
)
def test_one_refusal_leaves_the_rest(call: str, places: list[str], number: int, reason: str) -> None:
    (device,) = gather(node(h200(**{call: error(number)})), {})["devices"]
    assert {place: device["not_read"].get(place) for place in places} == dict.fromkeys(places, reason)
    assert device["uuid"] is not None
    assert device["pcie"]["width_max"] == 16


def test_an_old_pynvml_is_asked_in_its_own_way() -> None:
    """No event reasons but throttle reasons, no second version of memory, bytes for strings, no MIG at all."""
    old = h200(
        nvmlDeviceGetName=b"Tesla V100",
        nvmlDeviceGetPciInfo=fake_nvml.SimpleNamespace(busId=b"00000000:3B:00.0"),
        nvmlDeviceGetCurrentClocksThrottleReasons=0x4 | 0x20 | 0x400,
    )
    lacks = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetMigMode", "nvmlDeviceGetMemoryAffinity")
    found = gather(node(old, lacks=lacks, memory_v2=False), {})
    (device,) = found["devices"]
    assert (device["name"], device["pci_bus_id"]) == ("Tesla V100", "00000000:3b:00.0")
    assert device["clocks"]["event_reasons"] == [
        "software power cap",
        "software thermal slowdown",
        "unknown bit 10",
    ]
    assert device["memory"]["reserved_bytes"] is None
    assert device["not_read"] == {"mig.mode": "not in this pynvml", "numa_nodes": "not in this pynvml"}
    assert device["mig"]["instances"] is None


def test_a_new_driver_without_the_old_function_is_asked_by_the_new_one() -> None:
    new = h200(
        nvmlDeviceGetTemperature=error(fake_nvml.FUNCTION_NOT_FOUND),
        nvmlDeviceGetTemperatureV=lambda sensor: 44,
    )
    (device,) = gather(node(new), {})["devices"]
    assert device["power"]["temperature_c"] == 44
    assert device["not_read"] == {}


def test_a_device_lost_in_between_is_not_asked_again_and_the_others_are() -> None:
    lost = error(fake_nvml.GPU_IS_LOST)
    found = plain(gather(node(h200(0, nvmlDeviceGetPowerUsage=lost), h200(1), h200(2, handle=lost)), {}))
    first, second = found["devices"]
    assert (first["lost"], first["name"], first["power"]["draw_w"]) == (True, "NVIDIA H200", None)
    assert first["nvlinks"] is None
    assert first["not_read"]["processes"] == "the device is lost"
    assert (second["lost"], second["not_read"]) == (False, {})
    assert found["not_read"]["devices[2]"] == "the device is lost"
    assert found["driver_version"] == "580.65.06"


@pytest.mark.parametrize("value", [0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF])
def test_numbers_that_stand_for_nothing_are_null(value: int) -> None:
    (device,) = gather(node(h200(nvmlDeviceGetCurrPcieLinkWidth=value)), {})["devices"]
    assert device["pcie"]["width"] is None
    assert device["not_read"] == {"pcie.width": "not available"}


def test_a_state_without_a_meaning_is_null() -> None:
    (device,) = gather(node(h200(nvmlDeviceGetPerformanceState=32)), {})["devices"]
    assert device["performance_state"] is None
    assert device["not_read"] == {"performance_state": "unknown value 32"}


def test_memory_of_a_process_that_is_not_told_is_null() -> None:
    hidden = [fake_nvml.SimpleNamespace(pid=7, usedGpuMemory=None)]
    (device,) = gather(node(h200(nvmlDeviceGetComputeRunningProcesses=hidden)), {})["devices"]
    assert device["processes"] == [{"pid": 7, "name": "python3", "used_bytes": None}]
    assert device["not_read"] == {"processes[7].used_bytes": "not available"}


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("/usr/bin/python3\0train.py\0--token=hf_AbCdEf123456", "python3"),
        ("VLLM::Worker_TP0", "VLLM::Worker_TP0"),
        ("sk-0123456789abcdef", "[redacted]"),
        ("", None),
    ],
)
def test_a_process_is_named_without_path_and_arguments(told: str, name: str | None) -> None:
    assert program(told) == name


def test_sets_of_cpus_are_ranges() -> None:
    assert members([0b1011, 1 << 63, 1]) == "0-1,3,127-128"
    assert members([0, 0]) is None


# -- several devices --------------------------------------------------------------------------------


def test_devices_on_a_switch_are_linked_all_to_all() -> None:
    found = gather(node(h200(0), h200(1), ancestors=50, peer=0), {})
    assert found["pairs"] == [
        {"a": 0, "b": 1, "between": "across NUMA nodes", "nvlinks": 18, "peer_over_nvlink": True}
    ]
    assert {name: pin.value for name, pin in pins(found).items()} == {
        "hardware": "2 x NVIDIA H200, 140 GiB",
        "clocks": "SM up to 1980 MHz, memory up to 3201 MHz, limit 700 W",
        "topology": "NVLink 18 links, all to all",
    }


def test_links_from_device_to_device_are_counted_by_pair() -> None:
    gpus = [h200(0, **linked_with(1, 4)), h200(1, **linked_with(0, 4)), h200(2, **linked_with(9, 2))]
    found = gather(node(*gpus, ancestors=20, peer=error(fake_nvml.NOT_SUPPORTED)), {})
    assert [pair["nvlinks"] for pair in found["pairs"]] == [4, 0, 0]
    assert pins(found)["topology"].value == "NVLink 4 links between 0-1; others several PCIe switches"


def test_devices_without_nvlink_are_said_to_have_none_only_where_it_is_known() -> None:
    card = h200(nvmlDeviceGetNvLinkState=error(fake_nvml.NOT_SUPPORTED))
    known = gather(node(card, card, peer=5), {})
    assert pins(known)["topology"].value == "no NVLink, same NUMA node"
    unknown = gather(node(card, card, peer=6), {})
    assert unknown["pairs"][0]["peer_over_nvlink"] is None
    assert pins(unknown)["topology"].value == "same NUMA node"
    assert shown([]) is None


def test_links_that_are_down_link_nobody() -> None:
    down = h200(nvmlDeviceGetNvLinkState=lambda at: 0 if at < 4 else error(fake_nvml.INVALID_ARGUMENT))
    found = gather(node(down, h200(1)), {})
    first = found["devices"][0]
    assert first["nvlinks"][0] == {
        "link": 0, "up": False, "version": None, "remote": None, "remote_pci_bus_id": None,
    }  # fmt: skip
    assert len(first["nvlinks"]) == 4
    assert found["pairs"][0]["nvlinks"] == 0


def test_clocks_that_are_set_and_devices_that_differ_are_told() -> None:
    slow = h200(1, nvmlDeviceGetApplicationsClock=lambda kind: {0: 1500, 2: 3201}[kind])
    found = pins(gather(node(h200(0), slow, h200(2, nvmlDeviceGetName="NVIDIA L4")), {}))
    assert found["hardware"].value == "2 x NVIDIA H200, 140 GiB; 1 x NVIDIA L4, 140 GiB"
    assert found["clocks"].value == (
        "2 x SM up to 1980 MHz, memory up to 3201 MHz, limit 700 W; "
        "1 x SM set to 1500 of 1980 MHz, memory up to 3201 MHz, limit 700 W"
    )


# -- what CUDA shows --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "devices", "note"),
    [
        (None, [0, 1, 2], ""),
        ("", [], ""),
        ("-1", [], ""),
        ("2,0", [2, 0], "order of the PCI bus"),
        ("1, 2", [1, 2], "order of the PCI bus"),
        ("1gpu", [1], "order of the PCI bus"),
        ("0,7,1", [0], "'7' names no device here"),
        ("0,-1,1", [0], "cut off"),
        ("0,0", [], "named twice"),
        ("x,0", [], "'x' names no device here"),
        ("GPU-2,GPU-08f7", [2, 0], ""),
        ("GPU-2,1", [2], "'1' names no device here"),
        ("GPU-", [], "'GPU-' names no device here"),
    ],
)
def test_cuda_visible_devices_is_read_as_cuda_does(
    variable: str | None, devices: list[int], note: str
) -> None:
    environment = {} if variable is None else {"CUDA_VISIBLE_DEVICES": variable}
    found = gather(node(h200(0), h200(1), h200(2)), environment)["visible"]
    assert (found["variable"], found["devices"]) == (variable, devices)
    assert note in "; ".join(found["notes"])
    assert bool(found["notes"]) == bool(note)


def test_numbers_are_not_guessed_where_devices_differ() -> None:
    nvml = node(h200(0), h200(1, nvmlDeviceGetName="NVIDIA L4"))
    unknown = gather(nvml, {"CUDA_VISIBLE_DEVICES": "0"})
    assert unknown["visible"]["devices"] is None
    assert pins(unknown) == {}
    by_bus = {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert pins(gather(nvml, by_bus))["hardware"].value == "1 x NVIDIA L4, 140 GiB"


@pytest.mark.parametrize(
    ("variable", "slices"),
    [
        ("MIG-12aaaaaa", ["MIG-12aaaaaa-1111-2222-3333-444455556666"]),
        ("MIG-GPU-18f7a0e2-1111-2222-3333-444455556666/3/0", ["MIG-12aaaaaa-1111-2222-3333-444455556666"]),
        ("MIG-1", []),
        ("MIG-10aaaaaa,MIG-10aaaaaa", []),
    ],
)
def test_slices_are_found_by_both_spellings(variable: str, slices: list[str]) -> None:
    found = plain(gather(node(h200(0), sliced(1)), {"CUDA_VISIBLE_DEVICES": variable}))
    mig = found["devices"][1]["mig"]
    assert [(one["gpu_instance"], one["compute_instance"]) for one in mig["instances"]] == [(1, 0), (3, 0)]
    assert found["devices"][1]["not_read"] == {"processes": "no permission"}
    assert found["visible"]["instances"] == slices
    assert found["visible"]["devices"] == ([1] if slices else [])
    assert pins(found).get("hardware") == (
        Pin("1 x NVIDIA H200 MIG 3g.71gb, 71 GiB", "found") if slices else None
    )


def test_a_sliced_device_by_its_number_is_said_to_show_slices_only() -> None:
    found = gather(node(sliced()), {})
    assert found["visible"]["notes"] == ["device 0 is sliced; CUDA shows only slices of it"]
    assert pins(found)["hardware"].value == "1 x NVIDIA H200, 140 GiB, sliced (MIG)"


# -- nobody to ask ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (12, "libnvidia-ml.so.1 is not found"),
        (9, "not loaded"),
        (4, "no permission"),
        (18, "restart the machine"),
        (999, "NVML does not start (error 999)"),
    ],
)
def test_a_driver_that_cannot_be_asked_is_absent_with_the_reason(number: int, words: str) -> None:
    found = gather(node(start=error(number)), {})
    assert list(found) == ["absent"]
    assert words in found["absent"]


def test_a_driver_without_devices_is_absent() -> None:
    assert gather(node(), {}) == {"absent": "the NVIDIA driver knows no device"}


def test_without_pynvml_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # how Python spells a module that cannot be imported
    assert snapshot() == {"absent": "pynvml is not installed: pip install nvidia-ml-py"}


@WITH_PYNVML
def test_the_real_pynvml_is_asked_here_and_in_another_process() -> None:
    """On a machine without a driver this is the absent way for real; with one, devices are told."""
    direct, bounded = snapshot(), ask()
    assert plain(direct) == direct
    assert direct.keys() == bounded.keys()
    if "absent" in direct:
        assert direct == bounded
    else:
        assert [one["uuid"] for one in direct["devices"]] == [one["uuid"] for one in bounded["devices"]]


@WITH_PYNVML
def test_the_stand_in_has_names_and_numbers_of_the_real_module() -> None:
    """Newer and older versions lack some functions; most must be there, and numbers must mean the same."""
    real = importlib.import_module("pynvml")
    stand_in = node()
    assert [name for name in vars(stand_in) if name.startswith("nvml") and not hasattr(real, name)] == []
    assert stand_in.nvmlMemory_v2 == real.nvmlMemory_v2
    for name in ("NOT_SUPPORTED", "NO_PERMISSION", "NOT_FOUND", "FUNCTION_NOT_FOUND", "GPU_IS_LOST"):
        number = getattr(real, f"NVML_ERROR_{name}")
        assert getattr(reader, name) == getattr(fake_nvml, name) == number
        assert real.NVMLError(number).value == number
    assert (real.NVML_P2P_STATUS_OK, real.NVML_P2P_CAPS_INDEX_NVLINK, real.NVML_TOPOLOGY_NODE) == (0, 2, 40)


LIBRARY = """
#include <string.h>
typedef struct { char old[16]; unsigned domain, bus, device, kind, subsystem; char id[32]; } pci;
typedef struct { unsigned long long total, unused, used; } memory;
typedef struct { unsigned pid; unsigned long long used; unsigned gpu, compute; } process;
int nvmlInitWithFlags(unsigned flags) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) { *handle = (void *)7; return 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { strcpy(text, "535.1"); return 0; }
int nvmlSystemGetProcessName(unsigned pid, char *text, unsigned size) { strcpy(text, "/bin/serve --x"); return 0; }
int nvmlDeviceGetName(void *handle, char *text, unsigned size) { strcpy(text, "Stub"); return 0; }
int nvmlDeviceGetPciInfo_v3(void *handle, pci *info) { strcpy(info->id, "00000000:1B:00.0"); return 0; }
int nvmlDeviceGetMemoryInfo(void *handle, memory *info) { info->total = 8; info->used = 3; return 0; }
int nvmlDeviceGetPowerUsage(void *handle, unsigned *mw) { *mw = 1500; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(void *handle, unsigned *mw) { return 3; }
int nvmlDeviceGetPersistenceMode(void *handle, int *mode) { return 4; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *mask) { *mask = 4; return 0; }
int nvmlDeviceGetNvLinkState(void *handle, unsigned link, int *up) { *up = 0; return link < 2 ? 0 : 2; }
int nvmlDeviceGetCpuAffinity(void *handle, unsigned size, unsigned long *set) { set[0] = 6; return 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, process *all) {
    if (!all) { *count = 1; return 7; }
    *count = 1; all[0].pid = 9; all[0].used = -1; return 0;
}
"""


@WITH_PYNVML
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here to build a library with")
def test_the_real_pynvml_on_a_small_library_of_an_old_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stub of the driver's library in C: few functions, refusals; all else is missing, as in an old driver."""
    (tmp_path / "stub.c").write_text(LIBRARY)
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "stub.c"], check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    found = ask({})
    (device,) = found["devices"]
    assert (found["driver_version"], found["cuda_driver_version"]) == ("535.1", None)
    assert (device["name"], device["pci_bus_id"], device["uuid"]) == ("Stub", "00000000:1b:00.0", None)
    assert device["memory"] == {"total_bytes": 8, "used_bytes": 3, "reserved_bytes": None}
    assert (device["power"]["draw_w"], device["power"]["limit_w"]) == (1.5, None)
    assert device["clocks"]["event_reasons"] == ["software power cap"]
    assert device["cpus"] == "1-2"
    assert [link["up"] for link in device["nvlinks"]] == [False, False]
    assert device["processes"] == [{"pid": 9, "name": "serve", "used_bytes": None}]
    assert device["not_read"]["power.limit_w"] == "not supported"
    assert device["not_read"]["persistence_mode"] == "no permission"
    assert device["not_read"]["uuid"] == "not in this driver"
    assert found["not_read"] == {
        "cuda_driver_version": "not in this driver",
        "nvml_version": "not in this driver",
    }


# -- the process that asks --------------------------------------------------------------------------


def module_pynvml(folder: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module ``pynvml`` before any other, here and in processes that are told where modules are."""
    (folder / "pynvml.py").write_text(code)
    monkeypatch.syspath_prepend(folder)


WORKING = """
import sys
from tests.collectors.fake_nvml import h200, node
sys.modules[__name__] = node(h200(0), h200(1))
"""


def test_a_snapshot_crosses_from_the_other_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module_pynvml(tmp_path, WORKING, monkeypatch)
    found = ask({"CUDA_VISIBLE_DEVICES": "1"})
    assert len(found["devices"]) == 2
    assert found["visible"]["devices"] == [1]
    assert ask({})["visible"]["devices"] == [0, 1]


def test_an_nvml_that_hangs_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The start of NVML never returns and does not mind SIGTERM."""
    code = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\ndef nvmlInit():\n    time.sleep(600)\n"
    module_pynvml(tmp_path, code + "class NVMLError(Exception): pass\n", monkeypatch)
    asking = Asking({}, limit_s=0.3)
    assert asking.result() == {"absent": "NVML did not answer within 0.3 s"}
    assert asking._process is not None
    assert asking._process.poll() == -9
    around = BeforeAndAfter({}, limit_s=0.3)
    around.before()
    assert around.after() == {
        "before": {"absent": "NVML did not answer within 0.3 s"},
        "after": {"absent": "not asked: there was no answer before"},
    }


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os.abort()", "exit code -6"),
        ("raise RuntimeError('broken build')", "RuntimeError: broken build"),
        ("import os; os.write(1, b'[1]'); os._exit(0)", "told no snapshot"),
    ],
)
def test_a_process_that_fails_is_told(
    code: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module_pynvml(tmp_path, code, monkeypatch)
    assert words in ask({})["absent"]


def test_profilers_stay_out_of_the_process_that_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import json, os; os.write(1, json.dumps({'environment': dict(os.environ)}).encode()); os._exit(0)"
    module_pynvml(tmp_path, code, monkeypatch)
    monkeypatch.setenv("CUDA_INJECTION64_PATH", "/opt/nsys/injection.so")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    told = ask({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})["environment"]
    assert "CUDA_INJECTION64_PATH" not in told
    assert "CUDA_VISIBLE_DEVICES" not in told  # the rank has none
    assert told["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


# -- sessions ---------------------------------------------------------------------------------------


def test_a_session_tells_the_devices_before_and_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module_pynvml(tmp_path, WORKING, monkeypatch)
    folder = RunFolder(tmp_path / "run")
    declared = manifest.declared(["topology=by hand"])
    with Session(folder, "torch", command=[], pins=declared, environment={}) as session:
        early = manifest.read(folder.path / "manifest.json").ranks[0]
        assert early.device is not None
        assert (len(early.device["before"]["devices"]), early.device["after"]) == (2, None)
        assert json.loads((folder.path / "ranks" / "device0.json").read_text())["after"] is None
        session.finish("complete")
    whole = manifest.read(folder.path / "manifest.json")
    device = whole.ranks[0].device
    assert device is not None
    assert device["before"]["taken_ns"] < device["after"]["taken_ns"]
    assert device["after"]["devices"][1] == {
        "index": 1,
        "uuid": "GPU-18f7a0e2-1111-2222-3333-444455556666",
        "name": "NVIDIA H200",
        "sm_now_mhz": 345,
        "memory_now_mhz": 3201,
        "clock_event_reasons": ["idle"],
        "power_draw_w": 76.543,
        "temperature_c": 31,
        "performance_state": "P0",
        "memory_used_bytes": 521 << 20,
        "ecc_uncorrected": 2,
        "lost": False,
    }
    full = json.loads((folder.path / device["file"]).read_text())
    assert full["after"]["taken_ns"] == device["after"]["taken_ns"]
    assert len(full["before"]["devices"][0]["nvlinks"]) == 18
    assert whole.pins["hardware"] == Pin("2 x NVIDIA H200, 140 GiB", "found")
    assert whole.pins["clocks"].source == "found"
    assert whole.pins["topology"] == Pin("by hand", "declared")


def test_a_session_without_a_driver_pins_no_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module_pynvml(tmp_path, "raise ImportError('none')", monkeypatch)
    folder = RunFolder(tmp_path / "run")
    with Session(folder, "torch", command=[], pins={}, environment={}) as session:
        session.finish("complete")
    whole = manifest.read(folder.path / "manifest.json")
    device = whole.ranks[0].device
    assert device is not None
    assert "pynvml is not installed" in device["before"]["absent"]
    assert device["file"] is None
    assert not list((folder.path / "ranks").glob("device*"))
    assert {"hardware", "clocks", "topology"} <= set(whole.undeclared)


def test_a_rank_tells_the_devices_that_it_sees_in_short_or_all_where_that_is_not_known() -> None:
    nvml = node(h200(0), h200(1, nvmlDeviceGetName="NVIDIA L4", nvmlDeviceGetMemoryInfo=error(3)))
    one = in_short(gather(nvml, {"CUDA_VISIBLE_DEVICES": "GPU-1"}))
    unknown = in_short(gather(nvml, {"CUDA_VISIBLE_DEVICES": "1"}))
    assert one is not None and unknown is not None
    assert [(device["index"], device["memory_used_bytes"]) for device in one["devices"]] == [(1, None)]
    assert [device["index"] for device in unknown["devices"]] == [0, 1]


# -- the command, and copies ------------------------------------------------------------------------


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["device"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "absent" in found or found["devices"]
    assert "copy_bandwidth" not in found


def test_the_command_writes_a_file_whole_or_says_why_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["device", "--json", str(tmp_path / "device.json")]) == 0
    assert capsys.readouterr().out == ""
    found = json.loads((tmp_path / "device.json").read_text())
    assert "absent" in found or found["devices"]
    assert main(["device", "--json", str(tmp_path / "none" / "device.json")]) == 2
    assert "device.json: cannot be written" in capsys.readouterr().err
    assert main(["device", "--limit", "0"]) == 2
    assert "--limit" in capsys.readouterr().err


def test_help_tells_every_option_and_an_example() -> None:
    text = subprocess.run(
        [sys.executable, "-m", "collectors", "device", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    ).stdout
    for word in ("--json", "--copy-bandwidth", "--into", "--rank", "--limit", "example:", "not_read"):
        assert word in text


def test_a_copy_counts_what_is_read_and_what_is_written() -> None:
    found = summed_up(1 << 30, [0.5, 0.6, 0.4])
    assert (found.median_ns, found.least_ns, found.most_ns) == (500_000, 400_000, 600_000)
    assert found.bytes_per_s == pytest.approx(2 * (1 << 30) / 0.5e-3)


def test_copies_can_be_put_into_the_records_of_a_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    for rank in (0, 1):
        folder.write(RankRecord(rank, "torch", "complete", device={"file": "ranks/device0.json"}))
    put_into(str(folder.path), 1, {"bytes_per_s": 4.1e12, "absent": None})
    one, two = (manifest.read_record(folder.record_path(rank)).device for rank in (0, 1))
    assert one == {"file": "ranks/device0.json"}
    assert two == {"file": "ranks/device0.json", "copy_bandwidth": {"bytes_per_s": 4.1e12, "absent": None}}
    assert manifest.read(folder.path / manifest.NAME).ranks[1].device == two
    put_into(str(folder.path), None, {"bytes_per_s": 4e12, "absent": None})
    assert manifest.read_record(folder.record_path(0)).device["copy_bandwidth"]["bytes_per_s"] == 4e12  # type: ignore[index]


def test_copies_go_nowhere_without_a_figure_or_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CollectError, match="nothing was measured"):
        put_into(str(tmp_path), None, {"bytes_per_s": None, "absent": "no torch"})
    with pytest.raises(CollectError, match="no rank 3"):
        put_into(str(tmp_path), 3, {"bytes_per_s": 4e12, "absent": None})
    assert not list(tmp_path.iterdir())
    assert main(["device", "--into", str(tmp_path)]) == 2
    assert "pass --copy-bandwidth" in capsys.readouterr().err


def test_without_torch_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    found = copy_bandwidth()
    assert (found.bytes_per_s, found.sizes, found.absent) == (None, [], "torch is not installed")


def test_copies_are_measured_where_torch_finds_a_device_and_else_the_reason_is_said() -> None:
    torch = pytest.importorskip("torch")
    found = copy_bandwidth([1 << 26])
    if not torch.cuda.is_available():
        assert (found.bytes_per_s, found.absent) == (None, "torch finds no CUDA device")
        return
    assert found.bytes_per_s is not None
    assert found.bytes_per_s == found.sizes[-1].bytes_per_s > 0
    assert found.absent is None
