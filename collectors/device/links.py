"""How devices are linked: NVLink by link, and what lies between each two devices of the node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from collectors.device.reader import Reader, text

_MAX_LINKS = 36
"""``NVML_NVLINK_MAX_LINKS`` of the newest NVML; a device answers for those that it has."""
_REMOTE = {0: "gpu", 1: "npu", 2: "switch"}  # nvmlIntNvLinkDeviceType_t
_NVLINK = 2  # nvmlGpuP2PCapsIndex_t
_P2P_OK, _P2P_UNKNOWN = 0, 6
BETWEEN = {
    0: "same board",
    10: "one PCIe switch",
    20: "several PCIe switches",
    30: "same host bridge",
    40: "same NUMA node",
    50: "across NUMA nodes",
}
"""The nearest thing that two devices share (``nvmlGpuTopologyLevel_t``), from near to far."""


@dataclass(frozen=True)
class Link:
    """One NVLink of a device; ``remote``: ``gpu``, ``switch`` or ``npu``; null for a link that is down."""

    link: int
    up: bool
    version: int | None
    remote: str | None
    remote_pci_bus_id: str | None


@dataclass(frozen=True)
class Pair:
    """What lies between two devices.

    ``nvlinks``: links from one to the other, or to the switches that they share, which is a bound;
    ``peer_over_nvlink``: whether the driver lets them reach one another so.
    """

    a: int
    b: int
    between: str | None
    nvlinks: int | None
    peer_over_nvlink: bool | None


def bus_id(info: Any) -> str | None:
    """The PCI bus id of NVML's structure, in small letters as the kernel spells it."""
    return None if info is None else text(info.busId).lower()


def links(reader: Reader, handle: Any) -> list[Link] | None:
    """The links of a device, ``[]`` is never guessed: None where it answers for none of them."""
    found = []
    first_reason = None
    for number in range(_MAX_LINKS):
        state, why = reader.attempt("nvmlDeviceGetNvLinkState", handle, number)
        if why is None:
            found.append(_link(reader, handle, number, bool(state)))
        first_reason = first_reason or why
        if reader.lost:
            break
    if not found and first_reason is not None:
        reader.not_read["nvlinks"] = first_reason
    return found or None


def _link(reader: Reader, handle: Any, number: int, up: bool) -> Link:
    if not up:
        return Link(number, False, None, None, None)
    field = f"nvlinks[{number}]"
    info = reader.ask(f"{field}.remote_pci_bus_id", "nvmlDeviceGetNvLinkRemotePciInfo", handle, number)
    return Link(
        link=number,
        up=True,
        version=reader.ask(f"{field}.version", "nvmlDeviceGetNvLinkVersion", handle, number),
        remote=reader.word(f"{field}.remote", _REMOTE, "nvmlDeviceGetNvLinkRemoteDeviceType", handle, number),
        remote_pci_bus_id=bus_id(info),
    )


def pair(reader: Reader, a: Linked, b: Linked) -> Pair:
    """What lies between two devices."""
    field = f"pairs[{a.index},{b.index}]"
    status = reader.ask(f"{field}.peer_over_nvlink", "nvmlDeviceGetP2PStatus", a.handle, b.handle, _NVLINK)
    return Pair(
        a=a.index,
        b=b.index,
        between=reader.word(
            f"{field}.between", BETWEEN, "nvmlDeviceGetTopologyCommonAncestor", a.handle, b.handle
        ),
        nvlinks=_common(a, b),
        peer_over_nvlink=None if status is None or status == _P2P_UNKNOWN else status == _P2P_OK,
    )


@dataclass(frozen=True)
class Linked:
    """A device with its handle and its links, as far as they are known."""

    index: int
    handle: Any
    pci_bus_id: str | None
    links: Sequence[Link] | None


def _common(a: Linked, b: Linked) -> int | None:
    if a.links is None or b.links is None:
        return None
    direct = sum(link.up and link.remote_pci_bus_id == b.pci_bus_id for link in a.links if b.pci_bus_id)
    through = min(sum(link.up and link.remote == "switch" for link in one.links or ()) for one in (a, b))
    if not direct and not through and any(link.up and link.remote is None for link in a.links):
        return None  # a link leads somewhere, nobody says where
    return direct + through


def shown(pairs: Sequence[Mapping[str, Any]]) -> str | None:
    """Pairs, as they stand in JSON, in a few words: ``NVLink 18 links, all to all``. None where nothing is known."""
    linked = [one for one in pairs if one["nvlinks"] and one["peer_over_nvlink"] is not False]
    others = [one for one in pairs if one not in linked]
    known = {one["between"] for one in others if one["between"] is not None}
    between = " or ".join(words for words in BETWEEN.values() if words in known)
    counts = sorted({one["nvlinks"] for one in linked})
    many = "-".join(str(count) for count in (counts[0], counts[-1])[: len(counts)]) if counts else ""
    if linked and not others:
        return f"NVLink {many} links, all to all"
    if linked:
        some = ", ".join(f"{one['a']}-{one['b']}" for one in linked)
        return f"NVLink {many} links between {some}; others {between or 'unknown'}"
    return f"no NVLink, {between}" if between and _told_without(others) else between or None


def _told_without(pairs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether it is known of all pairs that no NVLink joins them."""
    return all(one["nvlinks"] == 0 or one["peer_over_nvlink"] is False for one in pairs)
