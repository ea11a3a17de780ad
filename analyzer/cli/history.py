"""``tracebound history``, and what ``--store`` does for the commands that make a diagnosis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from analyzer.cli import options as opt
from analyzer.cli.console import ending, out, say
from analyzer.report.escape import visible

if TYPE_CHECKING:
    from analyzer.comparison.result import Comparison
    from analyzer.diagnosis import Diagnosis
    from analyzer.store import Recorded, Store

EXAMPLE = "Example: tracebound history --workload model=llama-8b"

HistoryStore = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="URL",
        envvar=opt.STORE_VARIABLE,
        help="The store: a SQLite file or a database URL.",
    ),
]
Workloads = Annotated[
    list[str] | None,
    typer.Option(
        "--workload",
        metavar="KEY|NAME=VALUE",
        help="Only workloads whose key begins so, or that pin this; may be repeated.",
        show_default=False,
    ),
]


def history(
    store: HistoryStore = "tracebound.sqlite",
    workload: Workloads = None,
    format_: opt.InspectFormat = opt.Format.MD,
    debug: opt.Debug = False,
) -> None:
    """Show the runs that a store keeps.

    Per workload in order of time: step times and what bound the steps, what was predicted and what came of it, and
    the comparisons. diagnose and compare write a store with --store.
    """
    with ending(debug=debug):
        from analyzer.report import history_text
        from analyzer.store import Store

        found = Store.opened(store, create=False).history(workload or ())
        out(found.to_json() if format_ is opt.Format.JSON else history_text.text(found))


def opened(store: str | None) -> Store | None:
    """The store that ``--store`` names; None without it. Before the analysis, which may take long."""
    if store is None:
        return None
    from analyzer.store import Store

    return Store.opened(store)


def record(store: Store | None, diagnosis: Diagnosis, *, quiet: bool) -> None:
    """Keep a diagnosis and say under which number."""
    if store is not None:
        _say(store, f"{_run(store.record(diagnosis))}", quiet=quiet)


def record_comparison(
    store: Store | None, comparison: Comparison, a: Diagnosis, b: Diagnosis, *, quiet: bool
) -> None:
    """Keep a comparison with both its runs and say under which numbers."""
    if store is not None:
        compared, run_a, run_b = store.record_comparison(comparison, a, b)
        was = "" if compared.new else " (was there already)"
        _say(
            store,
            f"comparison {compared.number}{was} of {_run(run_a)} and {_run(run_b)}",
            quiet=quiet,
        )


def _run(recorded: Recorded) -> str:
    return f"run {recorded.number}{'' if recorded.new else ' (was there already)'}"


def _say(store: Store, what: str, *, quiet: bool) -> None:
    if not quiet:
        say(f"kept in {visible(store.name, 200)}: {what}")
