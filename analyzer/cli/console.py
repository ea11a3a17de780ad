"""What the command line shows, and how a run ends: the only place that catches our errors."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

from analyzer.errors import InvariantError, TraceboundError
from analyzer.report.escape import visible

EXIT_GATE = 1
EXIT_BUG = 3
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
WARNINGS_SHOWN = 12
MESSAGE_LIMIT = 2_000


class GateError(TraceboundError):
    """A gate that the user asked for failed."""

    exit_code = EXIT_GATE


def say(text: str) -> None:
    """One line for a human, on stderr. ``text`` is safe already."""
    typer.echo(text, err=True)


def out(data: str | bytes) -> None:
    """Data on stdout."""
    typer.echo(data, nl=False)


def warn(warnings: Sequence[str], *, quiet: bool, verbose: bool) -> None:
    """Warnings on stderr: the first few, all with ``-v``, none with ``-q``."""
    if quiet:
        return
    shown = warnings if verbose else warnings[:WARNINGS_SHOWN]
    for text in shown:
        say(f"warning: {text}")
    if len(warnings) > len(shown):
        say(f"warning: {len(warnings) - len(shown)} more; -v shows all")


@contextmanager
def ending(*, debug: bool) -> Iterator[None]:
    """Turn every way in which a command can end into its exit code and one message."""
    try:
        yield
        sys.stdout.flush()
    except TraceboundError as error:
        _explain(error, debug=debug)
        raise typer.Exit(error.exit_code) from None
    except InvariantError as error:
        _trace(debug=debug)
        say(f"tracebound: internal contradiction: {visible(str(error), MESSAGE_LIMIT)}")
        say("  next: this is a bug, no figure was written; please report it with the output of --debug")
        raise typer.Exit(EXIT_BUG) from None
    except BrokenPipeError:
        # the reader of our output is gone (`| head`); keep the interpreter from flushing into it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(EXIT_BROKEN_PIPE) from None
    except KeyboardInterrupt:
        say("tracebound: interrupted; nothing was written")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _explain(error: TraceboundError, *, debug: bool) -> None:
    _trace(debug=debug)
    place = visible(error.path, MESSAGE_LIMIT)
    if error.where:
        place += f" ({visible(error.where, MESSAGE_LIMIT)})"
    say(f"tracebound: {place}: {visible(error.why, MESSAGE_LIMIT)}")
    say(f"  next: {visible(error.hint, MESSAGE_LIMIT)}")


def _trace(*, debug: bool) -> None:
    if debug:
        for line in traceback.format_exc().splitlines():
            say(visible(line))


class Bars:
    """Progress bars on stderr; says nothing where stderr is no terminal or ``-q`` was given."""

    def __init__(self, *, quiet: bool) -> None:
        console = Console(stderr=True)
        self._bars: Progress | None = None
        self._task: TaskID | None = None
        if console.is_terminal and not quiet:
            self._bars = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TaskProgressColumn(),
                TimeElapsedColumn(),
                console=console,
                transient=True,
            )

    def __enter__(self) -> Bars:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def start(self, label: str, total: int | None = None) -> None:
        """A stage begins; the bar of the stage before goes."""
        if self._bars is not None:
            if self._task is not None:
                self._bars.remove_task(self._task)
            self._task = self._bars.add_task(visible(label, 60), total=total)

    def advance(self, amount: int) -> None:
        """``amount`` more of the stage is done."""
        if self._bars is not None and self._task is not None:
            self._bars.advance(self._task, amount)


def written(report: Path, lines: Iterable[str], *, quiet: bool) -> None:
    """Where the report lies, on stdout, after what it says in short."""
    if not quiet:
        for line in lines:
            say(line)
    out(f"{visible(str(report))}\n")
