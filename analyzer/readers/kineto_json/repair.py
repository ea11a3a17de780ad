"""Single events that are not valid JSON: made readable where it is clear how, else given up.

Exporters of several years wrote names without escaping them: Windows paths, code with quotes and line
breaks, raw control bytes and broken UTF-8 (pytorch/kineto#336, #617, #750, #988).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from analyzer.readers.kineto_json.events import ONE_EVENT, Event, as_text

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
_BAD_ESCAPE = re.compile(r'\\(\\|["/bfnrt]|u[0-9a-fA-F]{4})|\\')
_SURROGATE = re.compile(
    r"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
# Half a pair makes msgspec say "truncated", wherever it stands.
_LONE_SURROGATE = re.compile(_SURROGATE.pattern.encode())
_BAREWORD = re.compile(r'("(?:[^"\\]|\\.)*")|(-?\b(?:inf|nan|Infinity|NaN)\b)', re.DOTALL)
_NAME_START = re.compile(r'"name"\s*:\s*"')
_NAME_END = re.compile(r'"(?=\s*,\s*"(?:ph|cat|pid|tid|ts|dur|args|id|bp|s)"\s*:|\s*\}\s*\Z)')
_RAW_QUOTE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})|(["\\])')

# Kineto writes ``inf`` for figures per SM when it does not know the device (as member values only). The
# quote before the colon must not be escaped, so the text of a string cannot match.
_MAYBE_BAREWORD = re.compile(rb":\s*-?(?:inf|nan|Infinity|NaN)\s*[,}\]]")
BAREWORD_VALUE = re.compile(rb'(?<!\\)("\s*:\s*)-?(?:inf|nan|Infinity|NaN)(?=\s*[,}\]])')


@dataclass(frozen=True)
class Repaired:
    """An event made readable. ``text`` is its valid JSON.

    ``change`` is "none" (bare words such as ``inf``, unexpected field types), "characters" (control
    characters, broken UTF-8) or "structure" (escapes and quotes).
    """

    event: Event
    text: bytes
    change: str


def repair_event(raw: bytes) -> Repaired | None:
    """Read one event text that does not decode as it is; None if it cannot be made readable."""
    text = raw.decode("utf-8", "replace")
    plain = _BAREWORD.sub(lambda match: match.group(1) or "null", text)
    odd = _SURROGATE.sub(lambda match: match.group(1) or "\\ufffd", _STRING.sub(_without_control, plain))
    escaped = _STRING.sub(lambda match: _BAD_ESCAPE.sub(_keep_escape, match.group()), odd)
    requoted = _requote_name(plain)
    clean = odd == plain and text.encode("utf-8") == raw
    characters = "none" if clean else "characters"
    for candidate, change in ((odd, characters), (escaped, "structure"), (requoted, "structure")):
        if candidate is not None and (event := _decode(candidate)) is not None:
            return Repaired(event, candidate.encode("utf-8", "replace"), change)
    return None


def has_barewords(text: bytes) -> bool:
    """Whether a bare word stands where a number should."""
    return _MAYBE_BAREWORD.search(text) is not None and BAREWORD_VALUE.search(text) is not None


def is_cut_off(text: bytes) -> bool:
    """Whether a text that begins with an event is well formed as far as it goes, but ends inside it."""
    try:
        ONE_EVENT.decode(_LONE_SURROGATE.sub(rb"\1", text))
    except msgspec.DecodeError as error:
        return "truncated" in str(error)
    return False


def _without_control(match: re.Match[str]) -> str:
    return _CONTROL.sub(_escape_control, match.group())


def _escape_control(match: re.Match[str]) -> str:
    """Layout characters keep their meaning; other control characters become the replacement sign."""
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(match.group(), "\ufffd")


def _keep_escape(match: re.Match[str]) -> str:
    return match.group() if match.group(1) else "\\\\"


def _requote_name(text: str) -> str | None:
    """Escape what stands between the quotes of ``"name"``; its end is the quote before the next key."""
    start = _NAME_START.search(text)
    end = _NAME_END.search(text, start.end()) if start else None
    if start is None or end is None:
        return None
    name = text[start.end() : end.start()]
    if name.endswith("\\"):  # a path that ends in a backslash, not an escaped quote
        name = name.replace("\\", "\\\\")
    name = _RAW_QUOTE.sub(lambda match: match.group() if match.group(1) else "\\" + match.group(), name)
    return text[: start.end()] + _CONTROL.sub(_escape_control, name) + text[end.start() :]


def _decode(text: str) -> Event | None:
    data = text.encode("utf-8", "replace")
    try:
        return ONE_EVENT.decode(data)
    except msgspec.ValidationError:
        return _loose(data)
    except msgspec.DecodeError:
        return None


def _loose(data: bytes) -> Event | None:
    """An event whose fields have unexpected types: scalars as text, the rest not there."""
    try:
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return None
    event = Event(id=fields.get("id", Event().id), args=fields.get("args", Event().args))
    for field in ("ph", "cat", "name", "pid", "tid"):
        setattr(event, field, _scalar_text(fields.get(field)))
    for field in ("ts", "dur"):
        if field in fields:
            setattr(event, field, None)  # forces the reading from text, which judges it
    return event


def _scalar_text(raw: msgspec.Raw | None) -> str | None:
    if raw is None:
        return None
    try:
        return as_text(msgspec.json.decode(raw))
    except msgspec.DecodeError:
        return None
