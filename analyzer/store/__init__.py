"""The store: runs, pins, budgets, predictions and their outcomes in a SQLite file or a PostgreSQL database.

>>> from analyzer.store import Store
>>> with Store.opened("tracebound.sqlite") as store:  # doctest: +SKIP
...     store.record(analysis.diagnosis)
...     store.history().workloads
"""

from __future__ import annotations

from analyzer.store.errors import StoreError
from analyzer.store.store import Recorded, Store
from analyzer.store.url import DEFAULT

__all__ = ["DEFAULT", "Recorded", "Store", "StoreError"]
