"""Help texts in the manner of nsys, written for these tests: of an early version and of a late one."""

from __future__ import annotations

OLD_VERSION = "NVIDIA Nsight Systems version 2020.3.4.32-abc"
OLD = """\
usage: nsys profile [<args>] [application] [<application args>]

\t-c, --capture-range=

\t   Possible values are none, cudaProfilerApi, nvtx.
\t   Where it stands with the
\t   --trace option, a trace is needed.

\t-d, --duration=

\t   Seconds.

\t-o, --output=

\t   The file.

\t-s, --sample=

\t   Possible values are 'cpu' or 'none'.
\t   Default is 'cpu'.

\t--stop-on-range-end=

\t   Possible values are 'true' or 'false'.

\t-t, --trace=

\t   Possible values are 'cuda', 'nvtx',
\t   'osrt' or 'none'. Default is 'cuda,nvtx'.
"""
OLD_EXPORT = """\
usage: nsys export

\t-o, --output=

\t   The file.

\t-t, --type=

\t   Possible values are: sqlite, info.
"""

NEW_VERSION = "NVIDIA Nsight Systems version 2026.2.1.210-262134210v0"
NEW = """\
usage: nsys profile [<args>] [application] [<application args>]

    -c, --capture-range=
       Possible values are none, cudaProfilerApi, nvtx, hotkey.

    --capture-range-end=
       Possible values are 'none', 'stop', 'stop-shutdown' or 'repeat[:N]'.
       Default is 'stop-shutdown'.

    --cpuctxsw=
       Possible values are 'process-tree', 'system-wide', or 'none'.

    --cuda-event-trace=
       Possible values are 'auto', 'true' or 'false'.

    --cuda-graph-trace=
       Possible values are 'graph[:<origin>]' or 'node[:<origin>]'.

    --gpu-metrics-devices=
       The argument must be 'none', 'all' or a list of IDs.

    --nccl-trace=
       Possible values are 'api', 'rt', 'gpu', 'default', 'all' or 'none'.

    -o, --output=
       The file.

    -s, --sample=
       Possible values are 'process-tree', 'system-wide' or 'none'.

    -t, --trace=
       Possible values are 'cuda', 'cuda-hw', 'nvtx', 'nccl', 'osrt' or 'none'.

    --trace-fork-before-exec=
       Possible values are 'true' or 'false'.
"""
NEW_EXPORT = """\
usage: nsys export [<args>] [nsys-rep-file]

    --include-blobs=
       Possible values are 'true' or 'false'.

    --include-json=
       Possible values are 'true' or 'false'.

    -o, --output=
       The file.

    -q, --quiet=
       Possible values are 'true' or 'false'.
"""
