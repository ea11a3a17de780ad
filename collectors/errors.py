"""What stops a collector, told so that the user knows what to do next."""

from __future__ import annotations


class CollectError(Exception):
    """Subject (a file, an option, a program), reason, what to try next. Exit code 2."""

    exit_code = 2

    def __init__(self, subject: str, why: str, hint: str) -> None:
        super().__init__(f"{subject}: {why}; next: {hint}")
        self.subject, self.why, self.hint = subject, why, hint
