"""Binary reports through a real `nsys`, where one that can read them is installed."""

from __future__ import annotations

import shutil

import msgspec
import pytest

from analyzer import pipeline
from analyzer.diagnosis import Diagnosis
from analyzer.errors import TraceError
from tests.shared import needs_shared, trace_path

needs_nsys = pytest.mark.skipif(shutil.which("nsys") is None, reason="nsys is not installed here")


def without_paths(diagnosis: Diagnosis) -> Diagnosis:
    ranks = [msgspec.structs.replace(rank, source="") for rank in diagnosis.ranks]
    hypotheses = [
        msgspec.structs.replace(row, evidence=[msgspec.structs.replace(e, input="") for e in row.evidence])
        for row in diagnosis.hypotheses
    ]
    return msgspec.structs.replace(diagnosis, inputs=[], ranks=ranks, hypotheses=hypotheses)


@needs_shared
@needs_nsys
@pytest.mark.parametrize("name", ["alpa/jax_mem", "alpa/nccl_init_nokernel"])
def test_a_report_is_exported_and_says_what_its_export_says(name: str) -> None:
    report = trace_path(f"{name}.nsys-rep")
    before = (report.read_bytes(), sorted(path.name for path in report.parent.iterdir()))
    try:
        capture = pipeline.read([report])
    except TraceError as error:
        assert "nsys export" in str(error)
        pytest.skip(f"this nsys cannot read the report: {error.why}")
    exported = pipeline.read([trace_path(f"{name}.sqlite")])
    assert without_paths(pipeline.analyze(capture).diagnosis) == without_paths(
        pipeline.analyze(exported).diagnosis
    )
    assert (report.read_bytes(), sorted(path.name for path in report.parent.iterdir())) == before
