"""Names: StringIds and free texts become codes of one string table, mapped once per distinct id."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from analyzer.arrays import unique_inverse
from analyzer.model import CodeArray, IntArray
from analyzer.readers.interning import Interner
from analyzer.readers.nsys_sqlite.bulk import Database, Texts
from analyzer.readers.nsys_sqlite.ledger import Ledger


class Strings:
    """The export's StringIds and the codes handed out so far."""

    def __init__(self, database: Database, ledger: Ledger) -> None:
        self._interner: Interner[str] = Interner()
        self._ledger = ledger
        self._ids: IntArray = np.empty(0, np.int64)
        self._values = pa.chunked_array([], pa.binary())
        if database.has("StringIds", "id", "value"):
            ids, values = database.strings("StringIds", "id", "value")
            if np.any(np.diff(ids) <= 0):
                order = np.argsort(ids, kind="stable")
                ids, values = ids[order], values.take(pa.array(order))
            self._ids, self._values = ids, values

    def intern(self, text: str) -> int:
        """The code of a text."""
        return self._interner[text]

    def table(self) -> tuple[str, ...]:
        """All texts so far; a text's position is its code."""
        return tuple(self._interner)

    def known(self, ids: IntArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """(n,) bool: whether StringIds has the id."""
        return self._positions(ids) >= 0

    def codes(self, ids: IntArray, place: str, change: Callable[[str], str] | None = None) -> CodeArray:
        """(n,) int32 codes of StringIds ids; negative ids (NULL) become -1.

        ``change`` is applied to each distinct text. Ids that StringIds lacks become a placeholder each, and
        are counted.
        """
        unique, inverse = unique_inverse(ids)
        texts = self.texts(unique)
        missing = np.array([text is None for text in texts], np.bool_) & (unique >= 0)
        lookup = np.full(len(unique), -1, np.int32)
        for position, (number, text) in enumerate(zip(unique.tolist(), texts, strict=True)):
            if text is None and number >= 0:
                lookup[position] = self.intern(f"<string id {number} is missing>")
            elif text is not None:
                lookup[position] = self.intern(change(text) if change else text)
        if missing.any():
            self._ledger.add(
                "missing-string",
                int(missing[inverse].sum()),
                "Names that the file refers to but does not hold are shown as placeholders.",
                place,
                total=len(ids),
            )
        return lookup[inverse]

    def codes_of_texts(self, texts: Texts) -> CodeArray:
        """(n,) int32 codes of a TEXT column; -1 stays."""
        lookup = np.array([*(self.intern(text) for text in texts.values), -1], np.int32)
        return lookup[texts.codes]

    def texts(self, ids: IntArray) -> list[str | None]:
        """Texts of a few ids (decoded with replacement), None where StringIds lacks one."""
        positions = self._positions(ids)
        found = positions >= 0
        raw = iter(self._values.take(pa.array(positions[found])).to_pylist() if found.any() else ())
        return [next(raw).decode("utf-8", "replace") if is_found else None for is_found in found.tolist()]

    def _positions(self, ids: IntArray) -> IntArray:
        if not len(self._ids):
            return np.full(len(ids), -1, np.int64)
        positions = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        return np.where(self._ids[positions] == ids, positions, -1)


def first_known(strings: Strings, candidates: Sequence[IntArray]) -> IntArray:
    """(n,) ids: per row the first candidate that StringIds has, else the first that is recorded at all."""
    chosen = candidates[0]
    unique, inverse = unique_inverse(chosen)
    if strings.known(unique).all():
        return chosen
    chosen_known = strings.known(unique)[inverse]
    for candidate in candidates[1:]:
        other, other_inverse = unique_inverse(candidate)
        other_known = strings.known(other)[other_inverse]
        take = ~chosen_known & (other_known | (chosen < 0))
        chosen = np.where(take, candidate, chosen)
        chosen_known = chosen_known | other_known
    return chosen
