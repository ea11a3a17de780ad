"""The manifest of a run folder, and which of its ranks each trace file belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analyzer.errors import TraceError
from collectors import manifest
from collectors.manifest import Manifest, ManifestError, RankRecord

_RANKS_SHOWN = 4


@dataclass(frozen=True)
class Run:
    """One manifest; ``by_file``: the record of each file that it lists, by the file's resolved path."""

    path: str
    manifest: Manifest
    by_file: dict[Path, RankRecord]

    def record_of(self, path: str) -> RankRecord | None:
        """The record of the rank that wrote a file, None for a file that no rank lists."""
        return self.by_file.get(Path(path).resolve())


def find_run(
    paths: Sequence[str | Path], files: Sequence[Path], given: str | Path | None = None
) -> Run | None:
    """The manifest that describes these files: the one given, else one in a folder of theirs that lists any of them.

    Raises TraceError for a manifest that cannot be used, and where the files belong to several runs.
    """
    if given is not None:
        return _read(Path(given))
    folders = {Path(path).expanduser() for path in paths if Path(path).expanduser().is_dir()}
    folders |= {parent for file in files for parent in file.parents[:1]}
    places = sorted({(folder / manifest.NAME).resolve() for folder in folders})
    runs = [_read(place) for place in places if place.is_file() and _is_one(place)]
    mine = [run for run in runs if any(run.record_of(str(file)) is not None for file in files)]
    if len(mine) > 1:
        raise TraceError(
            mine[1].path,
            "",
            f"describes another run than {mine[0].path}",
            "give the files of one run at a time",
        )
    return mine[0] if mine else None


def how_a_run_ended(folder: Path) -> str:
    """How the ranks of a run folder ended, in words: ``rank 0 failed, exit code 7``; empty where it is none."""
    place = folder / manifest.NAME
    if not place.is_file() or not _is_one(place):
        return ""
    words = [
        f"rank {record.rank} {'did not end' if record.status == 'running' else record.status}"
        + (f", exit code {record.exit_code}" if record.exit_code is not None else "")
        for record in _read(place).manifest.ranks[:_RANKS_SHOWN]
    ]
    return "; ".join(words)


def _is_one(path: Path) -> bool:
    """Whether a file of that name is ours: other tools have manifests, too."""
    with path.open("rb") as file:
        return manifest.FORMAT.encode() in file.read(1 << 20)


def _read(path: Path) -> Run:
    try:
        found = manifest.read(path)
    except ManifestError as error:
        raise TraceError(error.path, error.where, error.why, error.hint) from error
    folder = path.resolve().parent
    by_file = {(folder / file.path).resolve(): record for record in found.ranks for file in record.files}
    return Run(str(path), found, by_file)
