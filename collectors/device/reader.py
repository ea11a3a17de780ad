"""One question to NVML at a time: an answer, or null and the reason why there is none.

Devices and drivers differ in what they answer, so every call may fail by itself. NVML's error numbers are part of
its ABI (``nvml.h``, ``nvmlReturn_t``).
"""

from __future__ import annotations

from typing import Any

INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 2, 3, 4, 6
DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND, GPU_IS_LOST = 9, 12, 13, 15
RESET_REQUIRED, VERSION_MISMATCH, ARGUMENT_VERSION_MISMATCH, DEPRECATED = 16, 18, 25, 26

_REASONS = {
    NOT_SUPPORTED: "not supported",
    NO_PERMISSION: "no permission",
    NOT_FOUND: "not found",
    FUNCTION_NOT_FOUND: "not in this driver",
    GPU_IS_LOST: "the device is lost",
    RESET_REQUIRED: "the device must be reset",
    ARGUMENT_VERSION_MISMATCH: "not in this driver",
    DEPRECATED: "no longer supported",
}
_ABSENT = {
    NO_PERMISSION: "no permission to ask the NVIDIA driver",
    DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded",
    LIBRARY_NOT_FOUND: "no NVIDIA driver here: its library libnvidia-ml.so.1 is not found",
    VERSION_MISMATCH: "the NVIDIA driver and its library differ in version: restart the machine",
}
_OTHER_SPELLING = (FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH, DEPRECATED)
"""After these a later or an earlier function for the same thing may answer."""
_NOT_AVAILABLE = (0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF)
"""What NVML puts into an unsigned number that it does not know (``NVML_VALUE_NOT_AVAILABLE``)."""
LOST = _REASONS[GPU_IS_LOST]


def absence(error: Any) -> str:
    """Why NVML cannot be asked at all, by the error of its start."""
    return _ABSENT.get(_number(error), f"NVML does not start ({error})")


def text(value: Any) -> str:
    """A string of pynvml, whose older versions return bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class Reader:
    """Asks one device (or the driver). ``not_read`` holds field and reason of what was not answered."""

    def __init__(self, nvml: Any) -> None:
        """``nvml``: the module pynvml, initialized."""
        self.nvml = nvml
        self.not_read: dict[str, str] = {}
        self.lost = False

    def ask(self, field: str, names: str | tuple[str, ...], *arguments: Any) -> Any:
        """The answer of the first of these functions that exists, or None, noted under ``field``."""
        value, reason = self.attempt(names, *arguments)
        if reason is not None:
            self.not_read.setdefault(field, reason)
        return value

    def text(self, field: str, names: str | tuple[str, ...], *arguments: Any) -> str | None:
        """A string, or None."""
        value = self.ask(field, names, *arguments)
        return None if value is None else text(value)

    def word(self, field: str, words: dict[int, str], name: str, *arguments: Any) -> str | None:
        """A number's meaning; one that has no meaning here is noted and None."""
        value = self.ask(field, name, *arguments)
        if value is None or value in words:
            return None if value is None else words[value]
        self.not_read.setdefault(field, f"unknown value {value}")
        return None

    def attempt(self, names: str | tuple[str, ...], *arguments: Any) -> tuple[Any, str | None]:
        """Answer and None, or None and the reason. A device that is lost is not asked again."""
        if self.lost:
            return None, LOST
        reason = "not in this pynvml"
        for name in (names,) if isinstance(names, str) else names:
            function = getattr(self.nvml, name, None)
            if function is None:
                continue
            try:
                value = function(*arguments)
            except self.nvml.NVMLError as error:
                number = _number(error)
                reason = _REASONS.get(number, f"NVML says: {error}")
                self.lost = number == GPU_IS_LOST
                if number in _OTHER_SPELLING:
                    continue
                return None, reason
            if isinstance(value, int) and value in _NOT_AVAILABLE:
                return None, "not available"
            return value, None
        return None, reason


def _number(error: Any) -> int:
    number = getattr(error, "value", None)
    return number if isinstance(number, int) else -1
