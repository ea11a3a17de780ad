"""Reader of the SQLite databases that ``nsys export --type sqlite`` writes."""

from analyzer.readers.nsys_sqlite.reader import read
from analyzer.readers.nsys_sqlite.schema import looks_like

__all__ = ["looks_like", "read"]
