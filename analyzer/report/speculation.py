"""SPECULATION.md: what was counted, what it gains at measured times, and the model beside it."""

from __future__ import annotations

from pathlib import Path

from analyzer.report.escape import cell, code, prose
from analyzer.report.markdown import environment
from analyzer.report.numbers import count, share
from analyzer.report.outputs import staging_folder
from analyzer.report.tables import table
from analyzer.speculation.result import Acceptance, ConstantChance, Interval, Speculation, StepTime

TEMPLATE = "SPECULATION.md.jinja"
REPORT = "SPECULATION.md"
FOLDER = "speculation"
JSON = "speculation.json"
POSITIONS_SHOWN = 32


def render_speculation(result: Speculation) -> str:
    """The report as Markdown: the same text for the same result."""
    acceptance = result.acceptance
    return (
        environment()
        .get_template(TEMPLATE)
        .render(
            version=prose(result.tracebound_version),
            answer=_answer(result),
            cautions=_cautions(result),
            counted=_counted(acceptance),
            rests_on=prose(_sentence(acceptance.tokens_because)),
            positions=_positions(acceptance),
            positions_note=_positions_note(acceptance),
            model=_model(acceptance),
            times=_times(result),
            gains=_gains(result),
            unknown=_unknown(result),
        )
    )


def write_speculation(result: Speculation, directory: Path) -> Path:
    """Write SPECULATION.md and ``speculation/speculation.json`` under ``directory``; returns the former's path.

    The old report goes first and the new one comes last: where it stands, the JSON beside it belongs to it.
    """
    with staging_folder(directory) as staging:
        (staging / JSON).write_bytes(result.to_json())
        (staging / REPORT).write_text(render_speculation(result), encoding="utf-8", newline="\n")
        (directory / FOLDER).mkdir(exist_ok=True)
        (directory / REPORT).unlink(missing_ok=True)
        (staging / JSON).replace(directory / FOLDER / JSON)
        (staging / REPORT).replace(directory / REPORT)
    return directory / REPORT


def _answer(result: Speculation) -> list[str]:
    acceptance = result.acceptance
    lines = []
    if acceptance.tokens_per_cycle is None:
        lines.append(prose(_sentence(acceptance.tokens_because)))
    else:
        lines.append(
            f"**{acceptance.tokens_per_cycle:.3f} tokens per cycle**{_ci(acceptance.tokens_ci95, 3)}, measured over"
            f" {count(acceptance.cycles or 0, 'cycle')}."
        )
    if result.speedup is None:
        why = prose(_sentence(result.speedup_because))
        return [*lines, *([] if why in lines else [why])]
    words = {
        "faster": "speculation is faster",
        "slower": "speculation is a slowdown",
        "not told": "the interval does not tell whether it is faster",
        None: "",
    }[result.verdict]
    if result.verdict in ("faster", "slower") and acceptance.requests is None:
        words += ", if cycles are independent of one another (requests are not told apart)"
    breakeven = (
        f"It breaks even at {result.breakeven_tokens:.3f} tokens per cycle{_ci(result.breakeven_ci95, 3)}."
    )
    if result.speedup_ci95 is None:
        words = prose(result.speedup_because)
    kind = result.speedup_kind or ""
    return [
        *lines,
        f"**Speedup {result.speedup:.3f}x**{_ci(result.speedup_ci95, 3)}, a {kind}: {words}. {breakeven}",
    ]


def _cautions(result: Speculation) -> list[str]:
    found = []
    for one in result.differences:
        found.append(
            f"The runs differ in {prose(one.what)}: {code(one.baseline, 40)} in the baseline,"
            f" {code(one.speculative, 40)} in the speculative run."
        )
    for one in result.beside:
        found.append(
            f"The captures differ in {prose(one.what)}, too: {code(one.baseline, 40)} in the baseline,"
            f" {code(one.speculative, 40)} in the speculative run. The speedup holds both, and is not that of"
            " speculation alone."
        )
    if result.undeclared:
        names = ", ".join(map(prose, result.undeclared))
        found.append(f"Undeclared, so that nothing says whether both runs were asked for the same: {names}.")
    if result.speedup_kind == "model":
        found.append("A time is given, not measured: the speedup is a model at that time.")
    constant = result.acceptance.constant
    if constant is not None and constant.describes is False:
        found.append(f"One chance for all positions does not describe the counts: {prose(constant.because)}.")
    return found


def _counted(acceptance: Acceptance) -> str:
    rows = [
        ["File", cell(acceptance.source, 60)],
        ["Cycles (verifications)", _whole(acceptance.cycles)],
        ["Requests", _whole(acceptance.requests, "not told apart")],
        ["Tokens drafted per cycle, at most", _whole(acceptance.draft_tokens)],
        ["Tokens drafted", _whole(acceptance.drafted)],
        ["Of them accepted", f"{acceptance.accepted:,}"],
    ]
    if acceptance.accepted_per_drafted is not None:
        ratio = share(acceptance.accepted_per_drafted, 2)
        rows.append(["Accepted / drafted (an engine's counter, not the model's chance)", ratio])
    return table(["", "Counted"], rows)


def _whole(value: int | None, missing: str = "not recorded") -> str:
    return missing if value is None else f"{value:,}"


def _positions(acceptance: Acceptance) -> str:
    rows = [
        [
            str(one.position),
            f"{one.trials:,}",
            f"{one.accepted:,}",
            "-" if one.chance is None else share(one.chance, 2),
            _shares(one.ci95),
        ]
        for one in acceptance.positions[:POSITIONS_SHOWN]
    ]
    if not rows:
        return ""
    text = table(["Position", "Judged", "Accepted", "Chance", "95 % interval"], rows, left=())
    more = len(acceptance.positions) - POSITIONS_SHOWN
    return text + (f"\n\n{count(more, 'more position')} in the JSON." if more > 0 else "")


def _positions_note(acceptance: Acceptance) -> str:
    if all(one.ci95 is None for one in acceptance.positions):
        return ", without intervals"
    by = ", with Clopper and\nPearson's 95 % interval"
    if acceptance.requests is not None:
        return f"{by}, of as many trials as requests that resemble themselves leave"
    return f"{by}, cycles taken as independent"


def _model(acceptance: Acceptance) -> str:
    constant = acceptance.constant
    if constant is None:
        return prose(_sentence(f"no chance is inferred: {acceptance.constant_because}"))
    return "\n".join(
        [
            table(
                ["", "Value", "Kind"],
                [
                    ["Chance that fits best", f"{share(constant.chance, 2)}{_shares_in(constant)}", "fit"],
                    [
                        "Tokens per cycle that it gives",
                        f"{constant.expected_tokens:.3f}",
                        "model",
                    ],
                ],
            ),
            "",
            prose(_sentence(constant.because)),
        ]
    )


def _shares_in(constant: ConstantChance) -> str:
    return "" if constant.ci95 is None else f" ({_shares(constant.ci95)})"


def _times(result: Speculation) -> str:
    sides = [("Baseline, one step", result.baseline), ("Speculative run, one cycle", result.cycle)]
    rows = [[name, *_time(one)] for name, one in sides if one is not None]
    if not rows:
        return ""
    return table(["", "Mean, ms", "95 % interval, ms", "Steps", "Phase", "Source"], rows, left=(0, 4, 5))


def _time(one: StepTime) -> list[str]:
    interval = "-" if one.ci95_ns is None else f"{one.ci95_ns[0] / 1e6:.3f} to {one.ci95_ns[1] / 1e6:.3f}"
    phase = "-" if one.phase is None else cell(one.phase, 40)
    source = one.source if one.rank is None else f"{one.source}, rank {one.rank}"
    return [f"{one.mean_ns / 1e6:.3f}", interval, _whole(one.steps, "-"), phase, source]


def _gains(result: Speculation) -> str:
    if result.speedup is None:
        return prose(_sentence(result.speedup_because))
    assert result.breakeven_tokens is not None
    rows = [
        ["Speedup", f"{result.speedup:.3f}x{_ci(result.speedup_ci95, 3)}", result.speedup_kind or ""],
        [
            "Tokens per cycle that break even",
            f"{result.breakeven_tokens:.3f}{_ci(result.breakeven_ci95, 3)}",
            result.speedup_kind or "",
        ],
    ]
    if result.model is not None:
        never = "no chance breaks even"
        chance = result.model.breakeven_chance
        rows += [
            ["Speedup, by one chance", f"{result.model.speedup:.3f}x", "model"],
            [
                "One chance that breaks even",
                never if chance is None else share(chance, 2),
                "model",
            ],
        ]
    return table(["", "Value", "Kind"], rows)


def _unknown(result: Speculation) -> list[str]:
    lines = [prose(note) for note in result.notes]
    lines.append(
        "**Other draft lengths, batches and contexts**: acceptance and times are of these runs alone."
    )
    lines.append(
        "**What speculation costs elsewhere** (memory of the draft model, quality) was not measured."
    )
    return lines


def terminal_lines(result: Speculation) -> list[str]:
    """The answer for a terminal."""
    return [line.replace("**", "") for line in _answer(result)]


def _ci(ends: Interval | None, decimals: int) -> str:
    return "" if ends is None else f" (95 % interval {ends[0]:.{decimals}f} to {ends[1]:.{decimals}f})"


def _shares(ends: Interval | None) -> str:
    return "-" if ends is None else f"{share(ends[0], 2)} to {share(ends[1], 2)}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
