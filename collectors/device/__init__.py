"""The devices of a rank, by NVML. Imports nothing: the process that asks NVML shall start fast.

- ``bounded``: ``ask`` with a time limit, ``BeforeAndAfter`` around a capture.
- ``snapshot``: ``snapshot`` asks in this very process; ``readings``, ``links``, ``visible`` are its parts.
- ``pins``: what of a snapshot a run pins. ``copy_bandwidth``: measured, on request.
- ``command``: ``python -m collectors device``.
"""
