"""Text of a capture as a database can hold it."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa


def storable(text: str) -> str:
    r"""``text`` without what a database refuses, spelled out: lone surrogates (``\udc80``) and NUL (``\x00``).

    PostgreSQL holds no NUL in a text; a lone surrogate stands for a byte of a file name that is not UTF-8.
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


class StoredText(sa.types.TypeDecorator[str]):
    """Text of any length, made storable on its way in."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Any) -> str | None:
        """What goes into the database."""
        del dialect
        return None if value is None else storable(value)
