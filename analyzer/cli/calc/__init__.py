"""``tracebound calc``: the calculators, one command each."""

from __future__ import annotations

import typer

from analyzer.cli.calc import device_commands, step_commands

app = typer.Typer(
    name="calc",
    help="Arithmetic that needs no trace.\n\nEach figure is labelled: budget, bound, model, fit or measurement.",
    epilog="Example: tracebound calc slot --step 16.6ms --launches 2790",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
device_commands.register(app)
step_commands.register(app)
