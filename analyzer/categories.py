"""The closed lists of labels that a nanosecond can carry (attribution contract, sections 2 and 5)."""

from __future__ import annotations

from enum import IntEnum


class Category(IntEnum):
    """Category of a path segment: exclusive and complete."""

    KERNEL = 0
    GRAPH_UNRESOLVED = 1
    COPY = 2
    PRIOR_WORK = 3
    COLLECTIVE_TRANSFER = 4
    COLLECTIVE_WAIT = 5
    COLLECTIVE_UNSPLIT = 6
    COLLECTIVE_HOST = 7
    LAUNCH_LATENCY = 8
    LAUNCH_API = 9
    LAUNCH_DISPATCH = 10
    GAP_DISPATCH = 11
    GAP_DEPENDENCY = 12
    HOST_API = 13
    HOST_FRAMEWORK = 14
    HOST_OUTPUT = 15
    HOST_WAIT = 16
    HOST_UNTRACED = 17
    HOST_SYNC_RETURN = 18
    SERVICE_OUTPUT = 19
    SERVICE_TRANSPORT = 20
    SERVICE_BUFFERING = 21
    PROFILER = 22
    UNATTRIBUTED = 23


CATEGORY_NAMES: dict[Category, str] = {
    Category.KERNEL: "kernel",
    Category.GRAPH_UNRESOLVED: "graph.unresolved",
    Category.COPY: "copy",
    Category.PRIOR_WORK: "prior_work",
    Category.COLLECTIVE_TRANSFER: "collective.transfer",
    Category.COLLECTIVE_WAIT: "collective.wait",
    Category.COLLECTIVE_UNSPLIT: "collective.unsplit",
    Category.COLLECTIVE_HOST: "collective.host",
    Category.LAUNCH_LATENCY: "launch.latency",
    Category.LAUNCH_API: "launch.api",
    Category.LAUNCH_DISPATCH: "launch.dispatch",
    Category.GAP_DISPATCH: "gap.dispatch",
    Category.GAP_DEPENDENCY: "gap.dependency",
    Category.HOST_API: "host.api",
    Category.HOST_FRAMEWORK: "host.framework",
    Category.HOST_OUTPUT: "host.output",
    Category.HOST_WAIT: "host.wait",
    Category.HOST_UNTRACED: "host.untraced",
    Category.HOST_SYNC_RETURN: "host.sync_return",
    Category.SERVICE_OUTPUT: "service.output",
    Category.SERVICE_TRANSPORT: "service.transport",
    Category.SERVICE_BUFFERING: "service.buffering",
    Category.PROFILER: "profiler",
    Category.UNATTRIBUTED: "unattributed",
}

DEVICE_CATEGORIES = frozenset(
    {
        Category.KERNEL,
        Category.GRAPH_UNRESOLVED,
        Category.COPY,
        Category.PRIOR_WORK,
        Category.COLLECTIVE_TRANSFER,
        Category.COLLECTIVE_WAIT,
        Category.COLLECTIVE_UNSPLIT,
    }
)
"""Categories whose time is device work running: never inferred."""

LAUNCH_CATEGORIES = frozenset({Category.LAUNCH_LATENCY, Category.LAUNCH_API, Category.LAUNCH_DISPATCH})
"""Categories whose time is submission."""

HOST_CATEGORIES = frozenset(
    {Category.HOST_FRAMEWORK, Category.HOST_UNTRACED, Category.HOST_API, Category.HOST_WAIT}
)
"""Categories whose time is CPU work that is neither submission nor output."""

CPU_CATEGORIES = LAUNCH_CATEGORIES | HOST_CATEGORIES | {Category.HOST_OUTPUT, Category.HOST_SYNC_RETURN}
"""Categories whose time is the CPU's, but for the profiler's own."""


class Exposure(IntEnum):
    """What the device did in a nanosecond, by precedence."""

    KERNEL = 0
    GRAPH_UNRESOLVED = 1
    PRIOR_WORK = 2
    COLLECTIVE = 3
    COPY = 4
    IDLE_HOST = 5
    IDLE_LAUNCH = 6
    IDLE_DEPENDENCY = 7
    IDLE_UNLINKED = 8
    IDLE_PROFILER = 9
    IDLE_AFTER_LAST = 10


EXPOSURE_NAMES: dict[Exposure, str] = {
    Exposure.KERNEL: "kernel",
    Exposure.GRAPH_UNRESOLVED: "graph.unresolved",
    Exposure.PRIOR_WORK: "prior_work",
    Exposure.COLLECTIVE: "collective",
    Exposure.COPY: "copy",
    Exposure.IDLE_HOST: "idle.host",
    Exposure.IDLE_LAUNCH: "idle.launch",
    Exposure.IDLE_DEPENDENCY: "idle.dependency",
    Exposure.IDLE_UNLINKED: "idle.unlinked",
    Exposure.IDLE_PROFILER: "idle.profiler",
    Exposure.IDLE_AFTER_LAST: "idle.after_last",
}


class Binding(IntEnum):
    """Why a path segment stands where it stands."""

    WORK = 0  # device work itself
    STREAM = 1  # the stream's previous work ended last
    SUBMISSION = 2  # the launch came last
    EVENT = 3  # a recorded cross-stream dependency
    INFERRED = 4  # no recorded cause; work elsewhere ended just before
    UNSEEN = 5  # submitted, stream free, nothing visible explains the wait
    GRAPH = 6  # order inside a replay
    HOST = 7  # CPU time on one thread
    SYNC = 8  # a call that was held by the device
    HANDOVER = 9  # another thread handed over
    JOIN = 10  # the thread waited for another thread
    MISSING = 11  # a record that would tell is missing


BINDING_NAMES: dict[Binding, str] = {binding: binding.name.lower() for binding in Binding}
