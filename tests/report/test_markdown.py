"""DIAGNOSIS.md: the golden report, its variants, and what hostile names may not do to it."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from analyzer.diagnosis import Budget, Diagnosis
from analyzer.report.budgets import disagreement
from analyzer.report.markdown import render
from tests.report import builder, joint_builder
from tests.report.builder import MS, budget, culprit, diagnosis, hypothesis, rank, window
from tests.report.numbers_in_markdown import numbers_of, shown_forms

GOLDEN = Path(__file__).resolve().parents[1] / "golden"

HOSTILE = [
    "0.0",
    "| a | b |\n|---|---|\n| x | y |",
    "```\n# Not a heading\n```",
    "<script>alert(1)</script><!-- <details>",
    "\x1b[2J\x1b]0;owned\x07\u202e\u200b\u2028",
    "[click](javascript:alert(1)) ![i](http://evil.example/x.png)",
    "{{ 7 * 7 }}{% raw %}",
    "a\\|b` `c\\`d",
    "\n\n# Findings\n\n1. launch-bound",
    "T<" * 10_000,
    "\x00\x7f\x9b31m",
    "",
    " ",
]


GOLDENS: dict[str, Callable[[], Diagnosis]] = {
    "one_rank": diagnosis,
    "several_ranks": lambda: several_ranks(),
    "joint_ranks": lambda: joint_ranks(),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_golden(name: str, request: pytest.FixtureRequest) -> None:
    """``pytest --update-golden`` rewrites the files; read the difference before you commit it."""
    shown = render(GOLDENS[name]())
    path = GOLDEN / f"{name}.md"
    if request.config.getoption("--update-golden"):
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")


def joint_ranks(text: str | None = None) -> Diagnosis:
    """Four ranks on one clock, rank 1 late."""
    fields = joint_builder.joint(text)
    mine = fields.pop("joint_budget")
    phase = "decode" if text is None else text
    found = hypothesis("collective-late-rank", phase=phase, scope="global", rank=1)
    return diagnosis(
        ranks=[rank(number) for number in range(4)],
        budget=[mine, *(msgspec.structs.replace(slower(number), phase=phase) for number in range(4))],
        hypotheses=[hypothesis(phase=phase, scope="global", rank=1), found],
        **fields,
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_of_groups_change_nothing(name: str) -> None:
    plain, attacked = render(joint_ranks("name")), render(joint_ranks(name))
    if name.strip():
        assert skeleton(attacked) == skeleton(plain)
        assert parsed(joint_ranks(name)) == parsed(joint_ranks("name"))
    assert not any(unicodedata.category(char) in {"Cc", "Cf"} and char != "\n" for char in attacked)


def test_the_report_says_who_waited_for_whom() -> None:
    text = render(joint_ranks())
    assert (
        "**Rank 1** comes last in 14 of 16 calls of group `2`, most often of all in 2 of 2 steps, 0.178 ms after"
        in text
    )
    assert "The path through all ranks lies on rank 1 70.0 %, rank 3 30.0 %." in text
    assert "0.120 ms apart (median)" in text
    assert "Phase `decode`, all ranks: **10.000 ms per step**" in text
    assert "most of it on rank 1" in text


def several_ranks() -> Diagnosis:
    ranks = [rank(number) for number in range(8)]
    source = diagnosis().inputs[0]
    return diagnosis(
        inputs=[
            msgspec.structs.replace(source, path=f"rank{number}.sqlite", ranks=[number], partial=number == 5)
            for number in range(8)
        ],
        ranks=ranks,
        missing_ranks=[8, 9],
        budget=[slower(number) for number in range(8)],
        hypotheses=[
            hypothesis(rank=3, verdict_note="Supported under distortion."),
            hypothesis("host-bound", rank=3, overlaps_with=["synchronization"]),
            hypothesis("synchronization", rank=3, overlaps_with=["host-bound"]),
            hypothesis("copies", rank=3),
            hypothesis("profiler-distortion", rank=3, gain_upper_bound_ns=None),
        ],
        kernels=[builder.kernel(rank=7), builder.kernel("only on rank 0")],
        host_culprits=[],
        notes=[
            "rank5.sqlite is incomplete: figures cover what could be salvaged.",
            "No file of rank 8, 9 was given: nothing is said about what these ranks did.",
            "Rank 1: 224 of 812 device events start before their own launch by the raw clocks; the device"
            " clock was shifted by 24031 ns.",
        ],
    )


def slower(number: int) -> Budget:
    extra = number * 1_000_001
    base = budget(number=number)
    return budget(
        number=number,
        step_ns_total=base.step_ns_total + extra,
        path_ns_total={**base.path_ns_total, "kernel": base.path_ns_total["kernel"] + extra},
        exposed_ns_total={**base.exposed_ns_total, "kernel": base.exposed_ns_total["kernel"] + extra},  # type: ignore[dict-item,index]
    )


def columns(text: str, head: str) -> list[list[str]]:
    """The cells of the first table whose first column is ``head``."""
    lines = text.split("\n")
    start = next(
        i for i, line in enumerate(lines) if line.startswith("|") and line.split("|")[1].strip() == head
    )
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([part.strip() for part in line.strip("|").split("|")])
    return rows


@pytest.mark.parametrize("head", ["On the path", "Device"])
def test_each_column_of_a_budget_adds_up_as_shown(head: str) -> None:
    rows = columns(render(several_ranks()), head)
    for column in (2, 3, 4):
        shown = [Fraction(row[column].replace(",", "").removesuffix(" %")) for row in rows]
        assert sum(shown[:-1]) == shown[-1]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_change_no_line_and_no_table(name: str) -> None:
    plain, attacked = render(builder.hostile("name")), render(builder.hostile(name))
    if name.strip():  # an empty text leaves its bullet out
        assert skeleton(attacked) == skeleton(plain)
    assert not any(unicodedata.category(char) in {"Cc", "Cf"} and char != "\n" for char in attacked)
    outside_code = re.sub(r"`[^`]*`", "", attacked.replace("\\`", ""))
    assert "<" not in outside_code
    assert max(map(len, attacked.split("\n"))) < 6_000


@pytest.mark.parametrize("name", [name for name in HOSTILE if name.strip()])
def test_a_markdown_parser_sees_the_same_document(name: str) -> None:
    """CommonMark with tables and raw HTML allowed: the names add no block, no link, no HTML."""
    plain, attacked = parsed(builder.hostile("name")), parsed(builder.hostile(name))
    assert attacked == plain


def parsed(attacked: Diagnosis) -> list[str]:
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = parser.parse(render(attacked))
    blocks = [token.type for token in tokens]
    inline = [child for token in tokens for child in token.children or ()]
    assert not {"html_inline", "image"} & {child.type for child in inline}
    assert "html_block" not in blocks
    links = [str(child.attrs["href"]) for child in inline if child.type == "link_open"]
    assert all(link.startswith("diagnosis/") for link in links)
    return [*blocks, *links]


def skeleton(text: str) -> list[str]:
    """The shape of a document: what starts each line, and how many cells a table row has.

    A number begins a list only where a blank follows its point: "0.0" does not.
    """
    structural = [line for line in text.split("\n") if re.match(r"[|#-]|\*\*|\d+[.)](?!\S)", line)]
    return [f"|{line.count('|')}" if line.startswith("|") else line[:2] for line in structural]


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(), min_size=1, max_size=60).filter(str.strip))
def test_any_name_is_data(name: str) -> None:
    text = render(builder.hostile(name))
    assert len(skeleton(text)) == len(skeleton(render(builder.hostile("name"))))


def test_an_open_explanation_without_a_share_is_in_the_answer() -> None:
    rows = [
        hypothesis(verdict="inconclusive"),
        hypothesis(id="kv-context", verdict="inconclusive", share=None),
    ]
    answer = render(diagnosis(hypotheses=rows)).split("\n\n")[1]
    assert re.search(r"\*\*Open\*\*: `launch-bound` [0-9.]+ to [0-9.]+ %, `kv-context` \(no share\)", answer)


def test_no_finding_says_so_and_names_the_nearest() -> None:
    open_row = hypothesis(verdict="inconclusive")
    assert "None: no explanation is supported. The largest one left open is `launch-bound`" in render(
        diagnosis(hypotheses=[open_row])
    )
    assert "None: no hypothesis was tested." in render(diagnosis(hypotheses=[]))


def test_a_capture_without_device_work_has_null_figures_not_zeros() -> None:
    text = render(
        diagnosis(
            boundary="host",
            ranks=[
                rank(
                    device=None,
                    device_span=None,
                    device_events=0,
                    linked_events=0,
                    unlinked_events=0,
                    prior_events=0,
                    windows=[window(0, exposed_ns=None, overlap_ns=None)],
                )
            ],
            budget=[budget(exposed_ns_total=None)],
            kernels=[],
        )
    )
    assert "Not captured: no device work was recorded." in text
    assert "None: no device work was recorded." in text
    assert "**Device work**: none recorded" in text


def test_warmup_only_and_stepless_captures_say_so_at_the_top() -> None:
    steps = msgspec.structs.replace(diagnosis().steps, rule="whole", pattern=None, confidence="none")
    text = render(diagnosis(steps=steps, budget=[budget(note="Every step is flagged as warm-up.")]))
    top = text[: text.index("## What was read")]
    assert "Phase `decode`: Every step is flagged as warm-up." in top
    assert "The whole capture is one window" in top


def test_a_capture_without_steps_is_told_as_a_whole_and_not_per_step() -> None:
    whole = budget(phase="whole capture", windows=1)
    text = render(diagnosis(budget=[whole], hypotheses=[], host_culprits=[culprit(phase="whole capture")]))
    heads = [line for line in text.splitlines() if "hase `whole capture`" in line and " ms " in line]
    assert len(heads) >= 2
    assert all("ms for the whole capture" in line for line in heads)
    assert not any("per step" in line or "mean of 1 step" in line for line in heads)
    assert "| What bounds it " in text
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    assert any("What it is" in line and "| Whole capture, ms |" in line for line in tables)
    assert not any("per step" in line or "In steps" in line for line in tables)
    assert "of the capture" in disagreement(whole)
    assert "No step: the capture as a whole, rank 0." in text


def test_findings_of_a_capture_without_steps_are_of_the_capture() -> None:
    found = [
        hypothesis(phase="whole capture"),
        hypothesis("copies", phase="whole capture", verdict="inconclusive"),
    ]
    whole = budget(phase="whole capture", windows=1)
    text = render(diagnosis(budget=[whole], hypotheses=found))
    findings = text[text.index("## Findings") : text.index("## Where the step goes")]
    assert "53.3 % (48.1 to 61.2 %) of the capture, phase `whole capture`" in findings
    assert "5.333 ms less for the whole capture: a bound" in findings
    lines = [
        line for line in findings.splitlines() if line.startswith(("###", "- **Measured", "- **At most"))
    ]
    assert len(lines) == 3
    assert not any("ms per step" in line or "of the step" in line or "mean of" in line for line in lines)
    assert "at most 5.333 ms for the whole capture" in text


def test_notes_that_differ_in_numbers_only_are_shown_a_few_times() -> None:
    text = render(diagnosis(notes=[f"Rank {rank}: clock shifted by {rank} ns." for rank in range(512)]))
    assert "Rank 2: clock shifted" in text
    assert "Rank 3: clock shifted" not in text
    assert "509 more notes like the last one in the JSON (notes)." in text


def test_messages_of_the_profiler_come_last() -> None:
    source = msgspec.structs.replace(diagnosis().inputs[0], diagnostics=["Events were lost."])
    text = render(
        diagnosis(inputs=[source], notes=["The profiler says: Events were lost.", "A clock is off."])
    )
    assert text.index("A clock is off.") < text.index("Events were lost.")


def test_a_clean_capture_says_so() -> None:
    clean = msgspec.structs.replace(builder.CONSTANTS, assumed=[])
    text = render(
        diagnosis(
            ranks=[rank(constants=clean, unlinked_events=0, prior_events=0)],
            quality=[],
            unmeasured=[],
            undeclared=[],
        )
    )
    assert "Nothing damaged or contradictory was found" in text
    assert "None: everything in the capture could be used." in text


def test_512_ranks_stay_readable() -> None:
    ranks = [rank(number) for number in range(512)]
    text = render(
        diagnosis(
            ranks=ranks,
            inputs=[
                msgspec.structs.replace(diagnosis().inputs[0], path=f"rank{number}.json", ranks=[number])
                for number in range(512)
            ],
            budget=[slower(number) for number in range(512)],
            hypotheses=[hypothesis(rank=number) for number in range(512)],
        )
    )
    assert "512 ranks (ranks 0-511)" in text
    assert len(columns(text, "Rank")) == 10
    assert len(text.split("\n")) < 320


def test_many_phases_stay_readable() -> None:
    text = render(diagnosis(budget=[budget(f"bs={size}", windows=size + 1) for size in range(60)]))
    assert "37 more phases in `budget.csv`." in text
    assert text.count("\n### Phase") == 3


def test_every_number_of_the_budget_is_in_the_json() -> None:
    small = diagnosis()
    data = msgspec.json.encode(small)
    for row in small.budget:
        for value in (row.step_ns_total, row.inferred_ns_total, *row.path_ns_total.values()):
            assert str(value).encode() in data
    assert small.budget[1].step_ns_total == MS * 30


@pytest.mark.parametrize(("length", "said"), [(15, True), (7, False)])
def test_one_event_that_holds_most_of_a_finding_is_said_to(length: int, said: bool) -> None:
    """16 ms over three steps; the longest segment has 15 or 7 of them."""
    row = hypothesis()
    longest = msgspec.structs.replace(row.evidence[0], start_ns=0, end_ns=length * MS)
    shown = render(diagnosis(hypotheses=[msgspec.structs.replace(row, evidence=[longest])]))
    assert ("one segment of 15.000 ms" in shown) == said


def test_every_number_of_a_report_is_in_the_json_and_a_wrong_one_is_seen() -> None:
    small = diagnosis()
    known, report = shown_forms(json.loads(msgspec.json.encode(small))), render(small)
    assert [number for number in numbers_of(report) if number not in known] == []
    for right, wrong in (("5.333", "5.337"), ("53.3 %", "53.7 %"), ("485 events", "487 events")):
        assert right in report
        assert numbers_of(wrong)[0] in numbers_of(report.replace(right, wrong))
        assert numbers_of(wrong)[0] not in known


def test_ranks_that_share_a_gpu_run_on_one() -> None:
    ranks = [rank(0, shared_gpu_with=[2]), rank(1), rank(2, shared_gpu_with=[0])]
    text = render(diagnosis(ranks=ranks, budget=[budget(number=at) for at in range(3)]))
    assert "3 ranks (ranks 0-2) on 2 × " in text


def test_ranks_are_counted_by_their_device() -> None:
    base = diagnosis()
    (one,) = base.ranks
    other = [msgspec.structs.replace(one, rank=number, device=None) for number in (1, 2)]
    mixed = render(msgspec.structs.replace(base, ranks=[one, *other]))
    assert "3 ranks (ranks 0-2) on no device (2 ranks), 1 × `NVIDIA H200`" in mixed
    assert "2 ranks (ranks 1-2) on no device;" in render(msgspec.structs.replace(base, ranks=other))


def test_constants_count_as_assumed_where_figures_rest_on_them() -> None:
    base = diagnosis()
    (one,) = base.ranks
    said = "- Assumed, because this capture holds no sample of it: launch latency of `cudaGraphLaunch`.\n"
    assert said in render(base)
    without = msgspec.structs.replace(one, device_events=0)
    assert "Assumed, because" not in render(msgspec.structs.replace(base, ranks=[without]))
