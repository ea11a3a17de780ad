"""Launch shapes: coverage, waves, occupancy and the trace's own estimate, each in its column."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from analyzer.diagnosis import KernelShape
from tests.builders import Schedule, analysis_of, schedule


def one_kernel(**columns: Any) -> Schedule:
    """A kernel of 12 blocks of 256 threads on a device like an H100."""
    known = {"block": (256, 1, 1), "registers": 128, "shared_static": 0, "shared_dynamic": 49_152}
    built = schedule().launch(0, 4, runs=(10, 110), name="gemm", grid=12, **{**known, **columns})
    return replace(built, sm_count=132, capability=(9, 0))


def only_shape(built: Schedule) -> KernelShape:
    (shape,) = analysis_of(built).diagnosis.kernel_shapes
    return shape


def test_coverage_and_occupancy_are_two_figures() -> None:
    shape = only_shape(one_kernel())
    assert shape.coverage == 12 / 132
    assert (shape.resident_blocks_per_sm, shape.occupancy, shape.limiter) == (2, 16 / 64, "registers")
    assert shape.waves == 12 / (132 * 2)
    assert shape.tail_idle == (264 - 12) / 264
    assert shape.trace_occupancy_pct is None
    assert shape.note == ""


def test_a_kernel_has_the_figures_of_its_shape_with_the_most_time() -> None:
    built = one_kernel().launch(
        4, 8, runs=(111, 121), name="gemm", grid=500, block=(256, 1, 1), registers=32, shared_static=0
    )
    (kernel,) = analysis_of(built).diagnosis.kernels
    assert (kernel.shapes, kernel.coverage, kernel.occupancy, kernel.limiter) == (
        2, 12 / 132, 0.25, "registers"
    )  # fmt: skip


def test_the_estimate_of_the_trace_is_kept_unless_it_is_its_known_fault() -> None:
    assert only_shape(one_kernel(occupancy_pct=13)).trace_occupancy_pct == 13
    fault = only_shape(one_kernel(occupancy_pct=0, shared_static=65_536, shared_dynamic=-1))
    assert fault.trace_occupancy_pct is None
    assert "wrong 0 %" in fault.note
    assert fault.occupancy is not None
    tiny = only_shape(one_kernel(occupancy_pct=0, shared_static=1_024, shared_dynamic=-1))
    assert tiny.trace_occupancy_pct == 0  # one small block on a large device rounds to nothing


@pytest.mark.parametrize(
    ("change", "coverage", "note"),
    [
        ({"vendor": "rocm"}, None, "not an NVIDIA device"),
        ({"capability": None}, 12 / 132, "compute capability is not recorded"),
        ({"capability": (9, 4)}, 12 / 132, "9.4 are unknown"),
        ({"sm_count": None}, None, "number of SMs is not recorded"),
    ],
)
def test_a_figure_that_cannot_be_had_is_null_and_says_why(
    change: dict[str, Any], coverage: float | None, note: str
) -> None:
    shape = only_shape(replace(one_kernel(), **change))
    assert shape.coverage == coverage
    assert shape.waves is None
    assert (shape.occupancy is None) == ("sm_count" not in change)
    assert note in shape.note


@pytest.mark.parametrize("column", ["registers", "shared_static"])
def test_an_unrecorded_resource_leaves_occupancy_null(column: str) -> None:
    shape = only_shape(one_kernel(**{column: -1}))
    assert shape.occupancy is None
    assert "not recorded" in shape.note
    assert shape.coverage == 12 / 132


@pytest.mark.parametrize(
    ("name", "bound"),
    [("nvjet_tst_64x8_64x16_2x1_v_bz_TNN", True), ("void at::native::elementwise_kernel<4>(int)", False)],
)
def test_kernels_that_may_run_in_clusters_have_an_upper_bound(name: str, bound: bool) -> None:
    built = replace(
        schedule().launch(
            0, 4, runs=(10, 20), name=name, grid=132, block=(384, 1, 1), registers=168, shared_static=0
        ),
        sm_count=132,
        capability=(9, 0),
    )
    assert ("cluster" in only_shape(built).note) == bound
