"""Every threshold of a verdict, in one place, shown in the report and settable."""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.errors import UsageError

DEFAULTS: dict[str, float] = {
    "supported_share": 0.10,  # lower end of the share at or above this: supported
    "contradicted_share": 0.02,  # upper end at or below this: contradicted
    "small_grid_coverage": 0.50,  # a grid that covers less of the device's SMs than this is small
    "distortion_share": 0.10,  # profiler time above this share distorts every absolute verdict
}


def resolve(overrides: Mapping[str, float]) -> dict[str, float]:
    """Defaults with the user's values. UsageError names the valid ones."""
    unknown = sorted(set(overrides) - set(DEFAULTS))
    if unknown:
        raise UsageError(
            "--threshold",
            unknown[0],
            "there is no threshold of this name",
            "use one of " + ", ".join(sorted(DEFAULTS)),
        )
    for name, value in overrides.items():
        if not 0 <= value <= 1:
            raise UsageError("--threshold", name, f"{value} is not a share", "give a number from 0 to 1")
    return {**DEFAULTS, **overrides}
