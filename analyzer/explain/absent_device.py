"""Captures of which the run's manifest says that no GPU was there: then no option of a profiler helps."""

from __future__ import annotations

from analyzer.model import Capture

WHERE = "capture where the GPU is; no option helps"
"""What to do about it."""


def no_device(capture: Capture) -> str:
    """What the manifest's ranks say of a device that is not there; "" where one has work or nothing is said."""
    found = [(record.device or {}).get("before") for record in capture.records if record is not None]
    reasons = [str(told["absent"]) for told in found if isinstance(told, dict) and "absent" in told]
    absent_on_all = bool(reasons) and len(reasons) == len(capture.records) and not any(capture.device_events)
    return reasons[0] if absent_on_all else ""


def sentence(why: str) -> str:
    """For the top of a report. ``why``: as ``no_device`` tells it."""
    return (
        f"No rank has device work, and the run's manifest says why: {why}; {WHERE}. Until then there is no device "
        "figure and no verdict about what bounds a step."
    )
