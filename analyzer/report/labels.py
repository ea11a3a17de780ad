"""Categories and labels in plain words, as the tables explain them."""

from __future__ import annotations

from analyzer.categories import CATEGORY_NAMES, DEVICE_CATEGORIES, EXPOSURE_NAMES, Exposure

CATEGORY_WORDS = {
    "kernel": "device kernels running",
    "graph.unresolved": "a graph replay running; its inside was not recorded",
    "copy": "copies and fills running on the device",
    "prior_work": "device work submitted before the capture began",
    "collective.transfer": "collective after its last rank arrived",
    "collective.wait": "collective waiting for a late rank",
    "collective.unsplit": "collective; waiting and transfer not told apart",
    "collective.host": "collective on the CPU; waiting and transfer not told apart",
    "launch.latency": "from the start of a launch call to the start of its work",
    "launch.api": "CPU inside launch calls",
    "launch.dispatch": "CPU between the launch calls of one burst",
    "gap.dispatch": "device turnaround between queued work",
    "gap.dependency": "queued work waiting for another stream, an event or an unseen cause",
    "host.api": "CPU inside other CUDA calls",
    "host.framework": "CPU inside framework ops and named ranges",
    "host.output": "CPU inside ranges declared as output",
    "host.wait": "CPU blocked, or waiting for another thread",
    "host.untraced": "CPU time with nothing recorded",
    "host.sync_return": "device done, the waiting call not yet back",
    "service.output": "output processing in the server",
    "service.transport": "between server and client",
    "service.buffering": "held back by buffering",
    "profiler": "overhead that the profiler recorded",
    "unattributed": "cause unknown: records missing or contradictory",
}
EXPOSURE_WORDS = {
    "kernel": "a kernel runs",
    "graph.unresolved": "a graph replay runs; its inside was not recorded",
    "prior_work": "work submitted before the capture runs",
    "collective": "only a collective runs",
    "copy": "only a copy or fill runs",
    "idle.host": "idle: the next work is not submitted yet",
    "idle.launch": "idle: the next work's launch is under way",
    "idle.dependency": "idle: the next work is submitted and waits",
    "idle.unlinked": "idle before work whose launch was not recorded",
    "idle.profiler": "idle under recorded profiler overhead",
    "idle.after_last": "idle after the step's last device work",
}
BOUNDARY_WORDS = {
    "device": "device completion: a step ends when the last device work that it launched is done",
    "host": "host range: a step is the range that the host recorded around it",
    "client": "client receipt: a step ends when the client has its output",
}
RULE_WORDS = {
    "regex": "ranges that match the pattern given",
    "marked-range": "step ranges that the program marks itself",
    "profiler-step": "torch.profiler's step markers",
    "engine-range": "an engine's own step ranges",
    "repeated-range": "a range name that repeats",
    "graph-replays": "replays of a CUDA graph",
    "kernel-period": "a repeating sequence of kernels",
}
VERDICT_ORDER = ("supported", "inconclusive", "contradicted", "unmeasured")

DEVICE_PATH = frozenset(CATEGORY_NAMES[category] for category in DEVICE_CATEGORIES)
"""Path categories whose time is device work running."""

DEVICE_BUSY = frozenset(
    EXPOSURE_NAMES[label]
    for label in (
        Exposure.KERNEL,
        Exposure.GRAPH_UNRESOLVED,
        Exposure.PRIOR_WORK,
        Exposure.COLLECTIVE,
        Exposure.COPY,
    )
)
"""Exposure labels under which the device works."""

PATH_GROUPS: dict[str, tuple[str, ...]] = {
    "kernels": ("kernel", "graph.unresolved", "prior_work"),
    "collectives": ("collective.transfer", "collective.wait", "collective.unsplit", "collective.host"),
    "copies": ("copy",),
    "launches": ("launch.latency", "launch.api", "launch.dispatch"),
    "device gaps": ("gap.dispatch", "gap.dependency"),
    "CPU": (
        "host.api",
        "host.framework",
        "host.output",
        "host.wait",
        "host.untraced",
        "host.sync_return",
    ),
    "other": ("service.output", "service.transport", "service.buffering", "profiler", "unattributed"),
}
"""The columns of the rank table: exclusive, and complete."""

CONSTANT_WORDS = {
    "launch_lambda_ns": "launch latency",
    "stream_tau_ns": "stream order (τ)",
    "turnaround_ns": "usual turnaround",
    "queue_depth_limit": "queue depth limit",
}
"""Constants of the capture as the report calls them."""
