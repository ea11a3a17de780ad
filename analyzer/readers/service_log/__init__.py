"""Token logs: tables of anybody's, and the log of this project's own client."""

from __future__ import annotations

from analyzer.readers.service_log.reader import find_logs, is_client_log, read_token_log

__all__ = ["find_logs", "is_client_log", "read_token_log"]
