"""DIAGNOSIS.md: about two screens of findings and budgets, then appendices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import jinja2

from analyzer.diagnosis import Diagnosis
from analyzer.report import (
    budgets,
    bytes,
    collective_price,
    device_work,
    findings,
    host_work,
    hypotheses,
    launches,
    ledgers,
    outliers,
    overview,
    predictions,
    ranks,
    service,
    views,
)
from analyzer.report.cautions import cautions
from analyzer.report.csv_tables import CONTENTS
from analyzer.report.escape import MARKDOWN, code, prose
from analyzer.report.numbers import count
from analyzer.report.reading import reading

if TYPE_CHECKING:
    from analyzer.report.figures import FigureLink, NotDrawn

TEMPLATE = "DIAGNOSIS.md.jinja"
CAUTIONS_SHOWN = 6


@cache
def environment() -> jinja2.Environment:
    """Where the reports' templates are."""
    # no autoescape: the views hand over Markdown in which every foreign text is already escaped
    return jinja2.Environment(
        loader=jinja2.PackageLoader("analyzer.report"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render(
    diagnosis: Diagnosis, figures: Sequence[FigureLink] = (), not_drawn: Sequence[NotDrawn] = ()
) -> str:
    """The report as Markdown: the same text for the same diagnosis.

    ``figures``: those written beside it; ``not_drawn``: those without anything to show.
    """
    warnings = cautions(diagnosis, MARKDOWN)
    warnings, more = warnings[:CAUTIONS_SHOWN], warnings[CAUTIONS_SHOWN:]
    if more:
        warnings.append(f"{count(len(more), 'more note')} before the quality ledger below.")
    return (
        environment()
        .get_template(TEMPLATE)
        .render(
            version=prose(diagnosis.tracebound_version),
            cautions=warnings,
            more_cautions=more,
            ledger=_ledger(diagnosis),
            reading=reading(diagnosis, MARKDOWN),
            findings=findings.findings(diagnosis),
            left_open=[*findings.unsplit_collectives(diagnosis), *findings.left_open(diagnosis)],
            no_finding=findings.no_finding(diagnosis),
            more_supported=findings.more_supported(diagnosis),
            budgets=budgets.budget_views(diagnosis),
            other_phases=budgets.other_phases(diagnosis),
            answer=overview.answer(diagnosis),
            compact=overview.compact(diagnosis),
            outliers=outliers.outlier_view(diagnosis),
            bytes=bytes.bytes_view(diagnosis),
            joint=ranks.joint(diagnosis),
            rank_tables=ranks.appendix(diagnosis),
            price_tables=collective_price.price_views(diagnosis),
            price_notes=[
                *collective_price.notes_on_fits(diagnosis),
                *collective_price.without_fit(diagnosis),
            ],
            service=service.after_device(diagnosis),
            focus=views.focus_text(diagnosis),
            kernels=device_work.kernel_table(diagnosis),
            kernels_short=device_work.kernels_short(diagnosis),
            device_tables=device_work.device_tables(diagnosis),
            launch_tables=launches.launch_tables(diagnosis),
            host=host_work.host_table(diagnosis),
            host_short=host_work.host_short(diagnosis),
            host_tables=host_work.host_tables(diagnosis),
            look_first=host_work.look_first_text(diagnosis),
            not_drawn=[f"{code(one.name)}: {prose(one.why)}" for one in not_drawn],
            figures=[(prose(link.title), prose(link.alt_text), link.path) for link in figures],
            hypotheses=hypotheses.hypothesis_table(diagnosis) if diagnosis.hypotheses else "",
            unmeasured_ids=hypotheses.unmeasured_ids(diagnosis),
            hypothesis_notes=hypotheses.hypothesis_notes(diagnosis),
            predictions=predictions.predictions(diagnosis),
            quality=ledgers.quality_table(diagnosis),
            undeclared=[prose(name) for name in diagnosis.undeclared],
            unmeasured=ledgers.unmeasured_table(diagnosis),
            constants=ledgers.constants_table(diagnosis),
            files=CONTENTS,
        )
    )


def _ledger(diagnosis: Diagnosis) -> str:
    if not diagnosis.quality:
        return ""
    kinds = len({row.reason for row in diagnosis.quality})
    return f"The quality ledger below counts {count(kinds, 'kind')} of loss or repair."
