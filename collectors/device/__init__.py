"""The devices of a rank, by NVML. Imports nothing: the process that asks NVML shall start fast.

- ``bounded``: ``ask`` with a time limit, ``BeforeAndAfter`` around a capture.
- ``snapshot``: ``snapshot`` asks in this very process; ``readings``, ``host``, ``links``, ``visible`` are its parts.
- ``pins``, ``short``: what of a snapshot a run pins, and what stands in a rank's record.
- ``copy_bandwidth``: measured, on request.
- ``command``: ``python -m collectors device``.
"""
