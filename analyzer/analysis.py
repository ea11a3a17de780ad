"""The frozen result that the library hands out: the diagnosis, its segments, views of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from analyzer import strict_json
from analyzer.diagnosis import FORMAT, FORMAT_VERSION, Diagnosis
from analyzer.errors import TraceError
from analyzer.tables import DetailTable, QueueTable, SegmentTable, TokenTable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Analysis:
    """The frozen result: the diagnosis and every segment it rests on.

    The tables are None where only the JSON was read back.
    """

    diagnosis: Diagnosis
    segment_table: SegmentTable | None
    queue: QueueTable | None = None
    detail: DetailTable | None = None
    global_segments: SegmentTable | None = None
    """The global paths of all steps: ``window`` is the global window, ``rank`` where the segment lies."""
    tokens: TokenTable | None = None
    """Every token of the token logs; None without one."""

    def windows(self) -> pd.DataFrame:
        """One row per step and rank, with a column per category and exposure label."""
        from analyzer import frames  # late: the command line starts without pandas

        return frames.windows(self.diagnosis)

    def segments(self) -> pd.DataFrame:
        """One row per path segment. An analysis read back from JSON has none: see segments.csv."""
        if self.segment_table is None:
            raise TraceError(
                "diagnosis.json",
                "",
                "the path segments are not part of it",
                "read segments.csv beside it, or analyze the capture again",
            )
        from analyzer import frames  # late: the command line starts without pandas

        return frames.segments(self.segment_table)

    def kernels(self) -> pd.DataFrame:
        """One row per name of device work and rank."""
        from analyzer import frames  # late: the command line starts without pandas

        return frames.kernels(self.diagnosis)

    def collectives(self) -> pd.DataFrame:
        """One row per group and kind of collective."""
        from analyzer import frames  # late: the command line starts without pandas

        return frames.collectives(self.diagnosis)

    def late_ranks(self) -> pd.DataFrame:
        """One row per rank that others wait for."""
        from analyzer import frames  # late: the command line starts without pandas

        return frames.late_ranks(self.diagnosis)

    def hypotheses(self) -> pd.DataFrame:
        """One row per candidate explanation."""
        from analyzer import frames  # late: the command line starts without pandas

        return frames.hypotheses(self.diagnosis)

    def to_json(self) -> bytes:
        """The diagnosis as strict JSON: the same bytes for the same result, UTF-8, newline at the end."""
        strict_json.require_finite(_rows_with_floats(self.diagnosis))
        return strict_json.encode(self.diagnosis)

    @classmethod
    def from_json(cls, data: bytes) -> Analysis:
        """Read ``diagnosis.json`` back, without the segments."""
        try:
            diagnosis = msgspec.json.decode(data, type=Diagnosis)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise TraceError(
                "diagnosis.json", "", str(error), "pass a diagnosis.json that tracebound wrote"
            ) from error
        if diagnosis.format != FORMAT or diagnosis.format_version != FORMAT_VERSION:
            raise TraceError(
                "diagnosis.json",
                "",
                f"format {diagnosis.format!r} version {diagnosis.format_version} is not"
                f" {FORMAT!r} version {FORMAT_VERSION}",
                "analyze the capture again with this version of tracebound",
            )
        return cls(diagnosis, None)


def _rows_with_floats(diagnosis: Diagnosis) -> list[msgspec.Struct]:
    rows: list[msgspec.Struct] = [*diagnosis.kernels, *diagnosis.hypotheses, *diagnosis.quality]
    rows += [*diagnosis.collectives, *diagnosis.classes]
    rows += [*diagnosis.kernel_shapes, *diagnosis.graph_replays, *diagnosis.look_first]
    rows += [diagnosis.whatif] if diagnosis.whatif is not None else []
    rows += diagnosis.bytes.with_floats() if diagnosis.bytes is not None else []
    rows += [diagnosis.constants, *(rank.constants for rank in diagnosis.ranks)]
    parts = (part for row in diagnosis.hypotheses for part in (row.share, row.measured))
    return rows + [part for part in parts if part is not None]
