"""What one change would give: every explanation's intervention, and what a user asks for, replayed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from analyzer.diagnosis import Hypothesis, Rank
from analyzer.errors import UsageError
from analyzer.explain.absent_device import WHERE
from analyzer.explain.ranks.joint_report import JointReport, used_globally
from analyzer.explain.windows import phases_of, used_windows
from analyzer.predict.assumptions import MEANINGS, Assumption, given
from analyzer.predict.changes import parse
from analyzer.predict.draft import Draft
from analyzer.predict.event_graph import EventGraph, event_graph
from analyzer.predict.prediction import Prediction, Predictor, Replayed, assumptions_of
from analyzer.predict.steps import Steps, covered_steps, global_steps
from analyzer.predict.validation import LEAST_STEPS, OddEven, odd_even
from analyzer.predicted import AssumptionUsed, PredictedChange, WhatIf

CHANGE_OF: Mapping[str, str] = {
    "launch-bound": "graph-capture",
    "host-bound": "host-work=0.5",
    "device-turnaround": "turnaround=0.5",
    "dependency-stalls": "no-dependencies",
    "synchronization": "no-sync",
    "copies": "copies=0.5",
    "kernel-bound": "kernel:.=0.5",
    "small-grids": "small-grids=0.5",
    "output-path": "output=0.5",
    "profiler-distortion": "no-overhead",
    "collective-transfer": "collective=0.5",
    "collective-late-rank": "even-ranks",
}
"""What is replayed for each hypothesis: its intervention where that is one thing, else half of what it names."""

_REACHES_FURTHER = frozenset({"graph-capture", "no-sync", "no-dependencies", "even-ranks"})
"""Changes that shorten more than the time of the hypothesis they belong to: its bound does not hold for them."""

_TOO_LARGE = "the steps are too large to be replayed"
_NO_DEVICE_WORK = "no device work was recorded, and only steps with device work are replayed"
_NO_STEPS = "no step of this phase is among the replayed ones"


@dataclass(frozen=True)
class Asked:
    """What a user wants to know: SPECs of changes, and assumptions as written."""

    changes: Sequence[str] = ()
    assume: Sequence[str] = ()
    own: bool = True  # besides, each explanation's intervention

    def checked(self) -> None:
        """Raises UsageError where something is not understood."""
        for spec in self.changes:
            parse(spec)
        given(self.assume)


@dataclass(frozen=True)
class Outlook:
    """Predictions, and the hypotheses with theirs."""

    whatif: WhatIf
    hypotheses: list[Hypothesis]


def outlook(joint: JointReport, hypotheses: list[Hypothesis], asked: Asked) -> Outlook:
    """Replay the changes. Raises UsageError where one that the user asked for does not fit the capture."""
    ranks = [report.rank for report in joint.reports]
    scopes = _scopes(joint, ranks)
    used = sum(len(steps) for steps in scopes.values())
    graphs = [report.graph for report in joint.reports if report.graph is not None]
    if not graphs or used < LEAST_STEPS:
        return Outlook(_nothing(_no_graph(ranks, used), used), hypotheses)
    graph = event_graph(graphs, joint.joint)
    covered = {key: covered_steps(graph, steps) for key, steps in scopes.items()}
    checked = odd_even(graph, [steps for steps in covered.values() if len(steps)])
    if checked.withheld:
        return Outlook(_nothing(checked.withheld, used, checked), hypotheses)
    replays = _Replays(graph, assumptions_of(graph, given(asked.assume)), checked, covered)
    own = [CHANGE_OF[row.id] for row in hypotheses if row.id in CHANGE_OF and row.share is not None]
    replays.replay([*(own if asked.own else ()), *asked.changes])
    by_hypothesis = [replays.of_hypothesis(row) if asked.own else None for row in hypotheses]
    changes = [found for found in by_hypothesis if found is not None]
    for spec in asked.changes:
        replays.require(spec)
        changes += [replays.predict(spec, key) for key in covered]
    whatif = WhatIf(
        odd_even_error=checked.error,
        odd_even_worst=checked.worst,
        steps_checked=checked.steps,
        steps_replayed=sum(len(steps) for steps in covered.values()),
        steps_used=used,
        withheld="",
        assumptions=replays.assumptions_used(),
        changes=_merged(changes),
    )
    rows = [
        row if found is None else msgspec.structs.replace(row, predicted_step_ns=found.predicted_step_ns)
        for row, found in zip(hypotheses, by_hypothesis, strict=True)
    ]
    return Outlook(whatif, rows)


def _no_graph(ranks: Sequence[Rank], used: int) -> str:
    """Why there is nothing to replay, the plainest reason first."""
    if not any(rank.device_events for rank in ranks):
        return _NO_DEVICE_WORK
    return OddEven(used, None, None, None).withheld if used < LEAST_STEPS else _TOO_LARGE


def what_would_predict(whatif: WhatIf, no_device: str) -> str:
    """The capture from which something could be predicted. ``no_device``: why no device was there, "" where one was."""
    if whatif.withheld == _NO_DEVICE_WORK:
        return WHERE if no_device else "a capture of the device's work"
    return "shorter steps" if whatif.withheld == _TOO_LARGE else "a capture of more, or steadier, steps"


_Key = tuple[str, str, int | None]
"""Phase, scope, rank."""


def _scopes(joint: JointReport, ranks: list[Rank]) -> dict[_Key, Steps]:
    """The steps of every phase's headline budget: over all ranks where there is one, else of each rank."""
    found: dict[_Key, Steps] = {}
    for phase in phases_of(ranks):
        windows = used_globally(joint.paths, phase)
        if windows:
            found[phase, "global", None] = global_steps([window.windows for window in windows])
            continue
        for rank in ranks:
            own = used_windows(rank, phase)
            if own:
                found[phase, "rank", rank.rank] = Steps(rank.rank, tuple(window.index for window in own))
    return found


def _nothing(why: str, used: int, checked: OddEven | None = None) -> WhatIf:
    return WhatIf(
        odd_even_error=None if checked is None else checked.error,
        odd_even_worst=None if checked is None else checked.worst,
        steps_checked=0 if checked is None else checked.steps,
        steps_replayed=0,
        steps_used=used,
        withheld=why,
        assumptions=[],
        changes=[],
    )


@dataclass
class _Replays:
    """Each change replayed once, read for any steps."""

    graph: EventGraph
    assumptions: dict[str, Assumption]
    checked: OddEven
    covered: Mapping[_Key, Steps]
    _done: dict[str, Replayed | UsageError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._predictor = Predictor(self.graph, self.assumptions)

    def replay(self, specs: Sequence[str]) -> None:
        """Replay changes that will be asked for, together."""
        drafts: dict[str, Draft] = {}
        for spec in dict.fromkeys(specs):
            try:
                drafts[spec] = self._predictor.draft(parse(spec))
            except UsageError as error:
                self._done[spec] = error
        self._done |= dict(zip(drafts, self._predictor.replay_all(list(drafts.values())), strict=True))

    def require(self, spec: str) -> None:
        """Raises UsageError where the capture lacks what the change needs."""
        found = self._done[spec]
        if isinstance(found, UsageError):
            raise found

    def of_hypothesis(self, row: Hypothesis) -> PredictedChange | None:
        """What is predicted for the intervention of a hypothesis that was measured; None for any other."""
        spec, key = CHANGE_OF.get(row.id), (row.phase, row.scope, row.rank)
        if spec is None or row.share is None:
            return None
        if key not in self.covered:  # the whole phase's, where the verdict is one rank's
            key = next((known for known in self.covered if known[0] == row.phase), key)
        most = None if spec in _REACHES_FURTHER else row.gain_upper_bound_ns
        return self.predict(spec, key, hypothesis=row.id, most_ns=most)

    def predict(
        self, spec: str, key: _Key, *, hypothesis: str = "", most_ns: int | None = None
    ) -> PredictedChange:
        """One change in one phase and scope. ``most_ns``: a bound on what it gives, per step."""
        steps, replayed = self.covered.get(key), self._done[spec]
        prediction: Prediction | None = None
        because = _too_few(0 if steps is None else len(steps))
        if isinstance(replayed, UsageError):
            because = replayed.why
        elif steps is not None and not because:
            prediction = replayed.predict(steps, self.checked)
        return PredictedChange(
            change=spec,
            phase=key[0],
            scope=key[1],
            rank=key[2],
            windows=len(steps) if steps else 0,
            step_ns=None if prediction is None else round(prediction.observed_ns),
            predicted_step_ns=None if prediction is None else _range(prediction, most_ns),
            gain_upper_bound_ns=_bound(prediction),
            because=because,
            hypotheses=[hypothesis] if hypothesis else [],
            assumptions=[] if prediction is None else [used.name for used in prediction.assumptions],
            notes=[] if prediction is None else list(prediction.notes),
        )

    def assumptions_used(self) -> list[AssumptionUsed]:
        """Those that any replay rests on."""
        used = {
            known.name: known
            for found in self._done.values()
            if isinstance(found, Replayed)
            for known in found.assumptions
        }
        return [
            AssumptionUsed(name=name, low=of.low, high=of.high, source=of.source, meaning=MEANINGS[name])
            for name, of in sorted(used.items())
        ]


def _bound(prediction: Prediction | None) -> int | None:
    if prediction is None or prediction.most_gain_ns is None:
        return None
    return math.ceil(prediction.most_gain_ns)


def _too_few(steps: int) -> str:
    """Why so few steps of a phase are not predicted, "" where there are enough: others' steps do not check them."""
    if steps >= LEAST_STEPS:
        return ""
    return (
        f"{steps} of this phase's steps are replayed: at least {LEAST_STEPS} are needed"
        if steps
        else _NO_STEPS
    )


def _range(prediction: Prediction, most_ns: int | None) -> tuple[int, int]:
    """Whole ns, outwards. A bound on the gain ends it."""
    low, high = prediction.range_ns
    if most_ns is not None:
        low = max(low, prediction.observed_ns - most_ns)
    return math.floor(low), math.ceil(max(low, high))


def _merged(changes: Sequence[PredictedChange]) -> list[PredictedChange]:
    """Each change of a phase and scope once; what a hypothesis and the user ask for is one row."""
    found: dict[tuple[object, ...], PredictedChange] = {}
    for row in changes:
        key = (row.change, row.phase, row.scope, row.rank)
        known = found.setdefault(key, row)
        if known is not row:
            ids = [*known.hypotheses, *(name for name in row.hypotheses if name not in known.hypotheses)]
            found[key] = msgspec.structs.replace(known, hypotheses=ids)
    return list(found.values())
