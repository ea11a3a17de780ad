"""Which Python frames are a user's or an engine's own code, by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from analyzer.model import SmallArray

OWN, INSTALLED, LIBRARY = 0, 1, 2
"""Own code; an installed package; the framework, the standard library or the interpreter itself."""

_LIBRARY = re.compile(
    r"^<(?:built-in|frozen|string|eval_with_key)|^nn\.Module: "
    r"|(?:^|[\\/])(?:torch|numpy|triton|asyncio|collections|concurrent|importlib|json|logging"
    r"|multiprocessing)[\\/]"
    r"|(?:^|[\\/]lib[\\/]python[\d.]+[\\/])(?:_\w+|abc|bisect|contextlib|copy|copyreg|dataclasses|enum|functools"
    r"|heapq|inspect|operator|os|pickle|posixpath|queue|random|re|selectors|socket|ssl|subprocess|tempfile"
    r"|threading|traceback|types|typing|uuid|warnings|weakref)\.py\b"
)
_INSTALLED = re.compile(r"[\\/](?:site|dist)-packages[\\/]")


def frame_origins(names: Sequence[str]) -> SmallArray:
    """(n,) int8: OWN, INSTALLED or LIBRARY of each name, read as a Python frame (``file.py(12): function``).

    Paths as torch.profiler writes them are relative to the import path, so that an installed engine reads
    as own code: it is what its user can look at.
    """
    origins = [
        LIBRARY if _LIBRARY.search(name) else INSTALLED if _INSTALLED.search(name) else OWN for name in names
    ]
    return np.array(origins, np.int8)
