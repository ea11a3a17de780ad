"""Capture a window of steps with torch.profiler, on every rank, into a run folder.

Three lines in the program, around its loop:

```python
from collectors.torch_profiler import capture

with capture("run", active=20) as steps:
    for batch in batches:
        work(batch)
        steps.step()
```

Without a folder, and without ``TRACEBOUND_RUN`` in the environment, this only counts steps, so that it may stay in the
program; ``python -m collectors torch -- CMD`` sets the variables and checks the result.

What profiling costs is measured as it runs: the median recorded step over the median step before the window, each from
the return of one ``step()`` to the next call, by the host's clock. The first step, the warm-up and the profiler's own
transitions are in neither. Each median has its 95 % interval, from six steps on, and a cost is certain only where
the two lie apart. With fewer than three of either the record has null and says why.

What goes wrong before the loop raises CollectError, before any work is lost. In ``step()`` nothing of the collector
is raised: the capture is given up, the program goes on, and the reason is raised as CollectError where the block
ends (as a note on the program's own exception, if there is one) and stands in the rank's record.

The trace is written when the window ends, inside that call of ``step()``: this takes seconds for large traces, and
keeps the capture should the program be killed later. SIGTERM inside the block (torchrun sends it to the other ranks
when one has died) becomes SystemExit(143) where the program has no handler of its own, so that what was captured is
written.

Do not start another profiler of torch inside the window: torch has one session per process, and crashes where two
overlap. A capture that finds one recording gives up and leaves it alone.
"""

from collectors.torch_profiler.recorder import Capture, capture

__all__ = ["Capture", "capture"]
