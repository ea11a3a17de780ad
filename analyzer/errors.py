"""The errors that a user can meet, and the exit codes that belong to them."""

from __future__ import annotations


class TraceboundError(Exception):
    """Base of every error that the command line turns into one message.

    The message names the file, the place in it, the reason and the next thing to try.
    """

    exit_code = 2

    def __init__(self, path: str, where: str, why: str, hint: str) -> None:
        self.path = path
        self.where = where
        self.why = why
        self.hint = hint
        place = f"{path} ({where})" if where else path
        super().__init__(f"{place}: {why}\n  next: {hint}")


class TraceError(TraceboundError):
    """An input that cannot be read or that holds nothing this tool can use."""


class UsageError(TraceboundError):
    """An option that does not fit the capture (an absent device, a pattern without a match)."""


class StepsError(TraceboundError):
    """Step ranges that do not order the device work, so windows cannot tile the time."""


class InvariantError(Exception):
    """A result breaks one of the analyzer's own laws; never the user's fault."""
