"""Programs that tests run in processes of their own, as text; they take the run's folder as their argument."""

from __future__ import annotations

LOOP = """
import os, signal, sys
import torch
from collectors.torch_profiler import capture
torch.set_num_threads(1)
x = torch.ones(16, 16)
at = int(os.environ.get("SIGNAL_AT", "-1"))
with capture(sys.argv[1] if len(sys.argv) > 1 else None, wait=4, warmup=1, active=5) as steps:
    for number in range(12):
        x = torch.relu(x @ x) / 16
        if number == at:
            os.kill(os.getpid(), int(os.environ["SIGNAL"]))
        steps.step()
print("work done after", steps.count, "steps", flush=True)
"""
"""A plain loop of 12 steps; sends itself a signal where it is told to."""

RANKS = """
import os, signal
import torch
import torch.distributed as dist
from collectors.torch_profiler import capture
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = torch.nn.Linear(16, 16)
killed = os.environ.get("KILLED_RANK") == os.environ["RANK"]
with capture() as steps, torch.no_grad():
    for number in range(12):
        y = model(torch.ones(4, 16))
        if killed and number == 8:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(y)
        steps.step()
dist.destroy_process_group()
"""
"""A small model with an all-reduce in each of 12 steps, under torchrun."""

FULL_DISK = """
import resource, sys
import torch
from collectors.torch_profiler import capture
with capture(sys.argv[1], wait=0, warmup=0, active=40) as steps:
    for number in range(50):
        torch.ones(4, 4).sum()
        if number == 20:  # no file may grow beyond: records fit, the trace does not
            resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, 8_000))
        steps.step()
    print("all", steps.count, "steps were done", flush=True)
"""
"""The trace cannot be written when the window ends."""
