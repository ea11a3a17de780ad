"""What a file looks like, by its first bytes: for messages about files that are no traces."""

from __future__ import annotations

ACCEPTED = (
    "accepted are .sqlite exports and .nsys-rep reports of Nsight Systems and .json or .json.gz traces of "
    "torch.profiler"
)
SQLITE_MAGIC = b"SQLite format 3\0"
GZIP_MAGIC = b"\x1f\x8b"
NSYS_REPORT_MAGIC = b"NVIDIA Tegra Profiler Report"

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (SQLITE_MAGIC, "a SQLite database"),
    (NSYS_REPORT_MAGIC, "a report of Nsight Systems"),
    (GZIP_MAGIC, "a gzip file"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd file (unpack it first)"),
    (b"\xfd7zXZ\x00", "an xz file (unpack it first)"),
    (b"BZh", "a bzip2 file (unpack it first)"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
    (b"\x89HDF", "an HDF5 file"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"\x7fELF", "a program or library"),
    (b"%PDF", "a PDF file"),
    (b"\x89PNG", "a picture"),
    (b"QDSTRM", "an unfinished recording of Nsight Systems (.qdstrm; import it with nsys first)"),
)
_TEXT: tuple[tuple[bytes, str], ...] = (
    (b"{", "JSON"),
    (b"[", "JSON"),
    (b"<!doctype html", "a web page (perhaps the answer of a server instead of the file)"),
    (b"<html", "a web page (perhaps the answer of a server instead of the file)"),
    (b"<", "XML"),
    (b"version https://git-lfs", "a Git LFS pointer (fetch the file with git lfs pull)"),
)


def looks_like(head: bytes) -> str:
    """A short phrase for a file that begins with ``head`` (at least 64 bytes where it has them)."""
    for magic, phrase in _MAGIC:
        if head.startswith(magic):
            return phrase
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    for start, phrase in _TEXT:
        if text.startswith(start):
            return phrase
    if b"\0" in head or any(byte < 9 for byte in head):
        return "a binary file of unknown kind"
    if text:
        return "a text file"
    return "a file of blanks" if head else "an empty file"
