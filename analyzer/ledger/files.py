"""Ledger files read and written. Every error names the file, the place in it and a way out."""

from __future__ import annotations

import os
import re
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from analyzer.errors import InvariantError, TraceboundError, TraceError
from analyzer.ledger.checks import defect_of, place_of
from analyzer.ledger.model import FORMAT, FORMAT_VERSION, Ledger

LONGEST_FILE_BYTES = 64_000_000
HINT = "docs/ledger.md describes the file; `tracebound ledger build` writes one"
_NUMBERS = re.compile(r"\[\n(?: +-?\d+,\n)+\]")


def read(path: str | Path) -> Ledger:
    """The ledger in ``path``, checked.

    Raises TraceError for a file that cannot be read or that is no ledger: unknown keys, wrong types, figures below
    zero, ranks twice, out of order or outside the layout, entries that claim to be the same, patterns that do not
    compile, phases without entries.
    """
    shown = str(path)
    document = _document(Path(path), shown)
    if document.get("format") != FORMAT:
        raise TraceError(shown, "format", f'is no ledger: format = "{FORMAT}" is missing', HINT)
    if document.get("format_version") != FORMAT_VERSION:
        found = document.get("format_version")
        why = "is missing" if found is None else f"is {found!r}; this version reads {FORMAT_VERSION}"
        raise TraceError(shown, "format_version", why, HINT)
    try:
        ledger = msgspec.convert(document, Ledger)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at ")
        raise TraceError(shown, place_of(where.strip("`"), document), reason, HINT) from None
    defect = defect_of(ledger)
    if defect is not None:
        raise TraceError(shown, defect.where, defect.why, HINT)
    return ledger


def _document(path: Path, shown: str) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST_FILE_BYTES + 1)
    except OSError as error:
        raise TraceError(shown, "", error.strerror or str(error), "give a readable ledger file") from None
    if len(data) > LONGEST_FILE_BYTES:
        raise TraceError(shown, "", f"is larger than {LONGEST_FILE_BYTES:,} bytes", "give a ledger file")
    try:
        return tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        raise TraceError(shown, f"byte {error.start}", "is no UTF-8 text", "save it as UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TraceError(shown, "", f"is no TOML: {error}", HINT) from None


def write(ledger: Ledger, path: str | Path) -> None:
    """Write ``ledger`` as TOML: the whole file, or none where the disk refuses (TraceboundError)."""
    data = to_toml(ledger)
    target = Path(path)
    try:
        _replace(target, data)
    except OSError as error:
        raise TraceboundError(
            str(target),
            "",
            f"cannot write the ledger: {error.strerror or error}",
            "choose another place with -o",
        ) from None


def _replace(target: Path, data: bytes) -> None:
    """A new file beside the target takes its place at once, with the permissions of an ordinary new file."""
    handle, name = tempfile.mkstemp(prefix=".tracebound-", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def to_toml(ledger: Ledger) -> bytes:
    """The file's bytes, the same for the same ledger; what is null or left at its default is left out."""
    defect = defect_of(ledger)
    if defect is not None:
        raise InvariantError(f"a ledger was built that no reader takes: {defect.where}: {defect.why}")
    text = tomli_w.dumps(_table(ledger))
    # lists of ranks and shapes on one line: no string of the file holds a line break
    text = _NUMBERS.sub(lambda found: "[" + ", ".join(re.findall(r"-?\d+", found.group())) + "]", text)
    return text.encode("utf-8", "backslashreplace")


def _table(value: msgspec.Struct) -> dict[str, Any]:
    """A struct's fields, without those that stand at their default: a reader fills them in."""
    fields = {field.name: field for field in msgspec.structs.fields(value)}
    return {
        name: _plain(content)
        for name, content in msgspec.structs.asdict(value).items()
        if fields[name].required or content != _default(fields[name])
    }


def _default(field: msgspec.structs.FieldInfo) -> object:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _plain(field: Any) -> Any:
    if isinstance(field, msgspec.Struct):
        return _table(field)
    if isinstance(field, list):
        return [_plain(item) for item in field]
    return dict(field) if isinstance(field, Mapping) else field
