"""Names by which engines and frameworks mark their steps, and what such a name says of the phase.

Sources: vLLM 0.11 to 0.33, SGLang 0.5.23, TensorRT-LLM's PyTorch executor, ATOM, Megatron's inference
engine, torch.profiler, and the ranges of ``collectors.ranges``. Ranges that torch emits through NVTX carry a
suffix (``, op_id = 7``), which is cut before matching.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

PREFILL, DECODE, MIXED = "prefill", "decode", "mixed"


@dataclass(frozen=True)
class Marker:
    """One family of step names.

    Named groups: ``ctx`` and ``gen`` count requests by phase, ``ctx_tokens`` and ``gen_tokens`` their new
    tokens, ``bs`` and ``tokens`` those of a step of one phase, ``phase`` is the phase by its name.
    """

    engine: str
    pattern: re.Pattern[str]
    phase: str | None = None  # fixed phase; None: from the groups


_NUMBER = r"\d+"

MARKED = Marker(
    "tracebound's ranges",
    re.compile(
        r"^tracebound\.step(?:\[(?P<phase>prefill|decode|mixed)?(?: ?bs=(?P<bs>\d+))?\])?(?:#\d+$|:)",
    ),
)
"""Steps that a program marks with ``collectors.ranges``."""

STEP_MARKERS: tuple[Marker, ...] = tuple(
    Marker(engine, re.compile(pattern), phase)
    for engine, pattern, phase in (
        (
            "vLLM (detailed annotations)",
            r"^execute_\d+_context_(?P<ctx>\d+)\(sq(?P<ctx_tokens>\d+)sk\d+sqsq\d+sqsk\d+\)"
            r"_generation_(?P<gen>\d+)\(sq(?P<gen_tokens>\d+)sk\d+sqsq\d+sqsk\d+\)$",
            None,
        ),
        (
            "vLLM",
            r"^execute_context_(?P<ctx>\d+)\((?P<ctx_tokens>\d+)\)"
            r"_generation_(?P<gen>\d+)\((?P<gen_tokens>\d+)\)$",
            None,
        ),
        (
            "SGLang",
            r"^step\[(?P<mode>[A-Z_0-9]+) (?:raw_)?bs=(?P<bs>\d+)(?: toks=(?P<tokens>\d+))?.*\]$",
            None,
        ),
        (
            "TensorRT-LLM",
            r"^(?:\[Executor\] )?_forward_step(?: \d+)?: (?P<ctx>\d+) ctx reqs, (?:(?P<ctx_tokens>\d+) ctx tokens, )?"
            r"(?P<gen>\d+) gen reqs$",
            None,
        ),
        ("ATOM", r"^prefill\[bs=(?P<bs>\d+)(?:/\d+)? tok=(?P<tokens>\d+).*\]$", PREFILL),
        ("ATOM", r"^decode\[bs=(?P<bs>\d+)(?:/\d+)? tok=(?P<tokens>\d+).*\]$", DECODE),
        ("Megatron inference", r"^(?:Prefill)$", PREFILL),
        ("Megatron inference", r"^(?:Decode)$", DECODE),
        ("Megatron inference", r"^(?:AsyncOverlap|AsyncNoOverlap)$", None),
        ("vLLM 0.12", r"^execute_new_\d+_cached_\d+$", None),
        ("JAX", r"^TSL:XlaModule:#.*hlo_module=.*#$", None),
    )
)

PROFILER_STEP = re.compile(r"^ProfilerStep#(\d+)$")

PHASE_RANGE = re.compile(r"^tracebound\.phase\[")
"""Phases that a program marks with ``collectors.ranges``: mostly around its steps."""

DISPATCH_RANGES = re.compile(r"^(?:gpu_model_runner: forward|Forward|gpu_model_runner: draft|Draft)$")
"""Engine ranges that exist to submit work: all CPU time in them is dispatch."""
SCHEDULING_RANGES = re.compile(
    r"^(?:schedule: |gpu_model_runner: preprocess$|Preprocess$|_fetch_new_requests|_schedule\b|_prepare_"
    r"|scheduler\.(?:recv_requests|process_input_requests|get_next_batch_to_run|process_queue"
    r"|sanity_check_cache|idle|other)$)"
)
OUTPUT_RANGES = re.compile(
    r"^(?:gpu_model_runner: (?:postprocess|sample|bookkeep|ModelRunnerOutput|AsyncGPUModelRunnerOutput)$"
    r"|(?:Postprocess|Sample|Bookkeep)$|_sample_async|_handle_responses|_update_requests|detokenization$"
    r"|scheduler\.process_batch_result$|tracebound\.output$)"
)
"""Engine ranges declared as sampling, bookkeeping of outputs, detokenization (host side)."""

_SGLANG_PHASE = {
    "EXTEND": PREFILL,
    "DECODE": DECODE,
    "VERIFY": DECODE,
    "MIXED": MIXED,
}

_OP_SUFFIX = re.compile(r"(?:, (?:seq|op_id|sizes|input_op_ids) = .*)$", re.DOTALL)


def clean_name(name: str) -> str:
    """A range name without what ``emit_nvtx`` appends to it."""
    return _OP_SUFFIX.sub("", name)


@dataclass(frozen=True)
class CleanNames:
    """The distinct clean texts of a name table; ``emit_nvtx`` makes a name of its own for every range."""

    texts: tuple[str, ...]
    of_code: npt.NDArray[np.int64]  # text of each name code; the last entry serves the code -1

    def matching(self, matcher: Callable[[str], object]) -> npt.NDArray[np.bool_]:
        """(names + 1,) bool, to be indexed by name code: whether the clean text satisfies ``matcher``."""
        hit = np.array([bool(matcher(text)) for text in self.texts] + [False])
        return hit[self.of_code]


@lru_cache(maxsize=2)  # every stage asks for the same table
def clean_names(names: tuple[str, ...]) -> CleanNames:
    """Clean a name table once, instead of each name at each use."""
    texts: dict[str, int] = {}
    codes = [texts.setdefault(clean_name(name), len(texts)) for name in names]
    return CleanNames(tuple(texts), np.array([*codes, -1], np.int64))


def find_marker(name: str) -> Marker | None:
    """The family that a (clean) range name belongs to."""
    return next((marker for marker in (MARKED, *STEP_MARKERS) if marker.pattern.match(name)), None)


def marks_a_step(name: str) -> bool:
    """Whether a (clean) range name stands for a step whoever else marks the steps of a capture."""
    return bool(PROFILER_STEP.match(name) or MARKED.pattern.match(name))


def phase_of(name: str) -> str | None:
    """Phase that a step name tells, None where it tells none."""
    marker = find_marker(clean_name(name))
    if marker is None:
        return None
    if marker.phase is not None:
        return marker.phase
    match = marker.pattern.match(clean_name(name))
    return _phase_of_groups(match.groupdict() if match else {})


def _phase_of_groups(groups: dict[str, str]) -> str | None:
    if groups.get("mode"):
        return _SGLANG_PHASE.get(groups["mode"], groups["mode"].lower())
    if groups.get("phase"):
        return groups["phase"]
    if "ctx" not in groups:
        return None
    context, generation = int(groups["ctx"]), int(groups["gen"])
    if context and generation:
        return MIXED
    return PREFILL if context else DECODE if generation else "idle"


BATCH, TOKENS = "batch", "tokens"

_ANY_BATCH = re.compile(r"(?:^|[^a-z])(?:bs|batch[_ ]?size|batch)[ _=:]*(\d+)(?!\d*\.\d)", re.IGNORECASE)


@dataclass(frozen=True)
class Shape:
    """How large a step's work is: requests (``BATCH``) or new tokens (``TOKENS``)."""

    unit: str
    size: int

    def __str__(self) -> str:
        return f"{BATCH} {self.size}" if self.unit == BATCH else f"{self.size} {self.unit}"


@lru_cache(maxsize=65_536)
def shape_of(name: str) -> Shape | None:
    """Batch shape that a step name tells: requests of a decode step, new tokens of any other."""
    clean = clean_name(name)
    marker = find_marker(clean)
    match = marker.pattern.match(clean) if marker is not None else None
    if marker is None or match is None:
        any_batch = _ANY_BATCH.search(clean)
        return Shape(BATCH, int(any_batch[1])) if any_batch else None
    told = {key: int(text) for key, text in match.groupdict().items() if text is not None and text.isdigit()}
    context = told.get("ctx_tokens", told.get("tokens"))
    if phase_of(name) != DECODE and context:
        # a generating request has one new token where the name does not tell how many
        return Shape(TOKENS, context + told.get("gen_tokens", told.get("gen", 0)))
    requests = sum(told.get(key, 0) for key in ("ctx", "gen", "bs"))
    return Shape(BATCH, requests) if requests else None
