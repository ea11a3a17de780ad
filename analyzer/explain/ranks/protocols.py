"""What the name of a collective's kernel tells of algorithm and protocol.

From NCCL's kernel generators: up to 2.7 both words are true; from 2.8 on one kernel serves all protocols, so that its
``LL`` says nothing; from 2.19 on (``ncclDevKernel_``) everything but TREE runs under ``RING``. Kernels of symmetric
memory carry their own algorithm. Kernels of others tell whether one or two stages do it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from analyzer.kernel_names import base_name


class Protocol(NamedTuple):
    """Algorithm and protocol, None where the name does not tell."""

    algorithm: str | None = None
    protocol: str | None = None


_SYMMETRIC = re.compile(r"^ncclSymk?DevKernel_[A-Za-z]+_(.+?)(?:_(?:sum|avg|min|max)_\w+)?$")
_OLDEST = re.compile(r"^nccl[A-Z][A-Za-z]*?(Ring|Tree|CollNet)(LL128|LL)?Kernel")
_OLD = re.compile(r"^ncclKernel_[A-Za-z]+_(RING|TREE|COLLNET_?[A-Z]*|NVLS_TREE|NVLS)_(?:LL128|LL|SIMPLE)")
_NEW_TREE = re.compile(r"^ncclDevKernel\w*_TREE_LL")
_STAGES = re.compile(r"(one|two|1|2)_?(?:shot|stage)", re.IGNORECASE)


def protocol_of(kernel: str | None) -> Protocol:
    """What a kernel's name tells."""
    base = "" if kernel is None else base_name(kernel)
    if found := _SYMMETRIC.match(base):
        return Protocol(found[1])
    if found := _OLDEST.match(base):
        return Protocol(found[1].upper(), found[2] or "SIMPLE")
    if found := _OLD.match(base):
        return Protocol(found[1])
    if _NEW_TREE.match(base):
        return Protocol("TREE")
    if not base.startswith("nccl") and (found := _STAGES.search(base)):
        return Protocol("one stage" if found[1].lower() in ("one", "1") else "two stages")
    return Protocol()
