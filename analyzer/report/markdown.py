"""DIAGNOSIS.md: about two screens of findings and budgets, then appendices."""

from __future__ import annotations

from functools import cache

import jinja2

from analyzer.diagnosis import Diagnosis
from analyzer.report import budgets, findings, work
from analyzer.report.cautions import cautions
from analyzer.report.csv_tables import CONTENTS
from analyzer.report.escape import MARKDOWN, prose
from analyzer.report.numbers import count
from analyzer.report.reading import reading

TEMPLATE = "DIAGNOSIS.md.jinja"
CAUTIONS_SHOWN = 14


@cache
def _environment() -> jinja2.Environment:
    # no autoescape: the views hand over Markdown in which every foreign text is already escaped
    return jinja2.Environment(
        loader=jinja2.PackageLoader("analyzer.report"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render(diagnosis: Diagnosis) -> str:
    """The report as Markdown: the same text for the same diagnosis."""
    warnings = cautions(diagnosis, MARKDOWN)
    if len(warnings) > CAUTIONS_SHOWN:
        left = len(warnings) - CAUTIONS_SHOWN
        warnings = [*warnings[:CAUTIONS_SHOWN], f"{count(left, 'more note')} in the JSON (notes, quality)."]
    return (
        _environment()
        .get_template(TEMPLATE)
        .render(
            version=prose(diagnosis.tracebound_version),
            cautions=warnings,
            ledger=_ledger(diagnosis),
            reading=reading(diagnosis, MARKDOWN),
            findings=findings.findings(diagnosis),
            no_finding=findings.no_finding(diagnosis),
            more_supported=findings.more_supported(diagnosis),
            budgets=budgets.budget_views(diagnosis),
            other_phases=budgets.other_phases(diagnosis),
            focus=work.focus_text(diagnosis),
            kernels=work.kernel_table(diagnosis),
            host=work.host_table(diagnosis),
            hypotheses=findings.hypothesis_table(diagnosis) if diagnosis.hypotheses else "",
            unmeasured_ids=findings.unmeasured_ids(diagnosis),
            hypothesis_notes=findings.hypothesis_notes(diagnosis),
            quality=work.quality_table(diagnosis),
            undeclared=[prose(name) for name in diagnosis.undeclared],
            unmeasured=work.unmeasured_table(diagnosis),
            constants=work.constants_table(diagnosis),
            files=CONTENTS,
        )
    )


def _ledger(diagnosis: Diagnosis) -> str:
    if not diagnosis.quality:
        return ""
    return f"The quality ledger below counts {count(len(diagnosis.quality), 'kind')} of loss or repair."
