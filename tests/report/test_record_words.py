"""Classes of records are shown in words."""

from __future__ import annotations

from analyzer.model import RECORD_CLASSES
from analyzer.report.record_words import RECORD_WORDS, records_in_words


def test_every_class_of_records_has_words() -> None:
    assert tuple(RECORD_WORDS) == RECORD_CLASSES
    assert records_in_words(["call", "nvtx"]) == "CUDA API calls, ranges"
    assert records_in_words([]) == ""
