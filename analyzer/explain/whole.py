"""The whole diagnosis, put together of what each rank, all ranks together and the explanations tell."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.diagnosis import FORMAT, FORMAT_VERSION, Budget, Diagnosis
from analyzer.explain import absent_device, cautions, profiling_cost, quality, run, summary
from analyzer.explain.explanations import Explained
from analyzer.explain.host.look_first import look_first
from analyzer.explain.outliers import outliers
from analyzer.explain.ranks import remarks
from analyzer.explain.ranks.costs import collective_costs
from analyzer.explain.ranks.joint_report import JointReport
from analyzer.explain.ranks.price import collective_prices
from analyzer.explain.windows import phases_of
from analyzer.model import Capture
from analyzer.version import __version__


def whole(
    capture: Capture,
    zero_ns: int | None,
    joint: JointReport,
    per_phase: list[Budget],
    explained: Explained,
    boundary: str,
    rules: Sequence[str],
) -> Diagnosis:
    """What ``diagnosis.json`` holds. ``zero_ns``: epoch of all times; ``rules``: files read after the built-in one."""
    reports, account = joint.reports, None if joint.paths is None else joint.paths.account
    ranks = [report.rank for report in reports]
    host_rollups = [row for report in reports for row in report.host_rollups]
    detail = explained.focus.detail
    return Diagnosis(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        tracebound_version=__version__,
        time_zero_ns=None if zero_ns is None else str(zero_ns),
        inputs=summary.inputs(capture),
        boundary=boundary,
        constants=ranks[0].constants,
        steps=summary.steps(reports),
        ranks=ranks,
        missing_ranks=list(capture.missing_ranks),
        rank_basis=capture.rank_basis,
        global_=account,
        budget=per_phase,
        outliers=outliers(ranks, account),
        kernels=[kernel for report in reports for kernel in report.kernels],
        kernel_shapes=[shape for report in reports for shape in report.shapes],
        host_culprits=[culprit for report in reports for culprit in report.culprits],
        hypotheses=explained.hypotheses,
        sweep=explained.sweep,
        whatif=explained.predicted.whatif,
        service=explained.service.result,
        collectives=joint.collectives,
        late_ranks=joint.late_ranks,
        alpha_beta=collective_prices(joint, run.pin(capture, "topology")),
        collective_costs=collective_costs(joint, phases_of(ranks)),
        run=run.facts(capture),
        undeclared=run.undeclared(capture),
        unmeasured=explained.unmeasured,
        quality=quality.ledger(
            capture,
            [
                *(entry for report in reports for entry in report.quality),
                *remarks.quality(joint),
                *explained.service.quality,
            ],
        ),
        ranges=[row for report in reports for row in report.ranges],
        classes=[row for report in reports for row in report.classes],
        launch_bill=[row for report in reports for row in report.launch_bill],
        graph_replays=[row for report in reports for row in report.graph_replays],
        shape_replays=[row for report in reports for row in report.shape_replays],
        small_kernels=[row for report in reports for row in report.small_kernels],
        step_work=[row for report in reports for row in report.step_work],
        step_sequences=[row for report in reports for row in report.step_sequences],
        host_rollups=host_rollups,
        look_first=look_first(host_rollups, per_phase, account),
        detail=None if detail is None else detail[0],
        rules=list(rules),
        shared_devices=summary.shared_devices(capture),
        bytes=explained.bytes,
        notes=_notes(capture, joint, explained),
    )


def _notes(capture: Capture, joint: JointReport, explained: Explained) -> list[str]:
    no_device = explained.advice.no_device
    return [
        *([absent_device.sentence(no_device)] if no_device else []),
        *run.notes(capture),
        *profiling_cost.notes(profiling_cost.costs(capture)),
        *cautions.notes(capture, joint.reports),
        *remarks.notes(joint, capture),
    ]
