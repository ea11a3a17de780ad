"""Classify the kernels of every shared capture and write docs/kernel-classes.md (``--check``: only compare).

Usage: python scripts/kernel_classes.py [--check] [FOLDER]    (FOLDER: the shared captures, ../shared/traces)
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from analyzer import pipeline
from analyzer.errors import TraceboundError
from analyzer.kernel_names import base_name, full_name
from analyzer.model import DeviceKind, Trace
from analyzer.rules import COLLECTIVE, OTHER, builtin_rules

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "kernel-classes.md"
READABLE = (".sqlite", ".json", ".gz")
NO_MACHINE_LEARNING = ("mordred", "pipit")
UNCLASSIFIED_SHOWN = 12
WRAPPERS = ("elementwise_kernel", "manual_unroll", "reduce_kernel", "multi_tensor_apply_kernel", "::kentry")
FUNCTOR = re.compile(r"\b(\w+(?:Functor\w*|Ops|_functor|_kernel\w*|KernelImpl\w*|Fwd\w*|Kernel)|Copy)\b")
PLUMBING = ("BinaryFunctor", "AUnaryFunctor", "BUnaryFunctor", "gpu_kernel_impl", "gpu_kernel_impl_nocast",
            "BinaryOpListAlphaFunctor", "UnaryOpFunctor")  # fmt: skip

INTRODUCTION = """# Kernel classes on real captures

How much of the kernel time of public captures the [built-in rules](rules.md) classify, as what, and what they
leave as `other`. The captures are other people's and not part of this repository (their folder names are
given). Time is the sum of kernel durations, copies by the copy engine left out. This page is written by
`python scripts/kernel_classes.py` and a test holds it against the program.

A high share says only that some rule matched; whether it was the right one is for the reader to judge by the
names below, and for the tests.

## Names that the rules had not seen

The rules were written with the names of these captures in view, so the table below flatters them. To measure
what they are worth elsewhere, kernel names were looked up in public profiles and code *after* the rules were
done, and the expected class of each was written down before the rules were run on it.

| round | names | right at the first try | then |
|---|---:|---:|---|
| 1 | 71 | 59 (83 %) | rules corrected |
| 2 | 35 | 32 (91 %) | rules corrected |
| 3 | 45 | 36 (80 %) | rules corrected |
| 4 | 21 | 16 (76 %) | rules corrected |

So about one in six names that the rules have never seen is still wrong: 143 of 172 were right. Of the 29 misses 8
had become `other` and 21 another class. Two of them are still not what was expected:
`_warp_decode_stage2_fp8_mxfp4_kernel` is a mixture-of-experts GEMM, which its name does not tell (it counts as
quantization), and `cuInt8::nhwcTonchw` counts as convolution, like every other change of a convolution's layout.
The rounds were made of what stood out in profiles of new engines and models, so they are harder than most captures.
All these names are tests now, so that later rounds need new ones.
"""


@dataclass
class Totals:
    """Kernel time by name and class, ns."""

    by_name: Counter[str] = field(default_factory=Counter)
    by_class: Counter[str] = field(default_factory=Counter)
    class_of: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, class_: str, ns: int) -> None:
        """Count one name's time."""
        self.by_name[name] += ns
        self.by_class[class_] += ns
        self.class_of[name] = class_

    @property
    def ns(self) -> int:
        """All kernel time."""
        return sum(self.by_class.values())


def totals(traces: tuple[Trace, ...]) -> Totals:
    """Kernel time of one capture."""
    rules, result = builtin_rules(), Totals()
    for trace in traces:
        table, names = trace.device, trace.process.names
        for recorded in (False, True):
            chosen = (table.kind == DeviceKind.KERNEL) & ((table.collective >= 0) == recorded)
            codes, inverse = np.unique(table.name[chosen], return_inverse=True)
            sums = np.zeros(len(codes), np.int64)
            np.add.at(sums, inverse, table.duration_ns[chosen])
            for code, ns in zip(codes.tolist(), sums.tolist(), strict=True):
                name = names[code] if code >= 0 else ""
                class_ = rules.kernel_class(name)
                if recorded and not rules.is_collective(name):
                    class_ = COLLECTIVE
                result.add(name, class_, ns)
    return result


def captures(folder: Path) -> Iterator[tuple[str, Totals]]:
    """Every capture of the folder that holds kernels, with its path there."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.suffix not in READABLE:
            continue
        try:
            found = totals(pipeline.read(path).traces)
        except TraceboundError:
            continue
        if found.ns:
            yield path.relative_to(folder).as_posix(), found


def short(name: str) -> str:
    """What tells the class of a name, as short as fits a table cell: base name and functor."""
    text = base_name(name) or "(no name)"
    if text.endswith(WRAPPERS):
        found = (word for word in FUNCTOR.findall(full_name(name)[len(text) :]) if word not in PLUMBING)
        text += f" {next(found, '')}".rstrip()
    return f"`{text[:70]}…`" if len(text) > 70 else f"`{text}`"


def _share(ns: int, of: int) -> str:
    return f"{100 * ns / of:.2f} %"


def _captures_table(found: list[tuple[str, Totals]]) -> list[str]:
    rows = [
        "",
        "## Captures",
        "",
        "| capture | names | kernel time | classified | largest classes |",
        "|---|---:|---:|---:|---|",
    ]
    for path, part in found:
        known = part.ns - part.by_class[OTHER]
        largest = ", ".join(
            f"{class_} {100 * ns / part.ns:.1f} %" for class_, ns in _ranked(part.by_class)[:5]
        )
        rows.append(
            f"| `{path}` | {len(part.by_name)} | {part.ns / 1e6:.3f} ms | {_share(known, part.ns)} | {largest} |"
        )
    learning = [part for path, part in found if not path.startswith(NO_MACHINE_LEARNING)]
    whole = sum(part.ns for part in learning)
    known = whole - sum(part.by_class[OTHER] for part in learning)
    rows += [
        "",
        f"Classified over all captures of machine learning: {_share(known, whole)} of {whole / 1e6:.0f} ms. "
        f"{' and '.join(f'`{name}`' for name in NO_MACHINE_LEARNING)} are a database join and fluid dynamics.",
    ]
    return rows


def _ranked(counter: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counter.items(), key=lambda item: (-item[1], item[0]))


def _unclassified_table(found: list[tuple[str, Totals]]) -> list[str]:
    rows = [
        "",
        "## Unclassified names",
        "",
        "| name | capture | kernel time | of the capture |",
        "|---|---|---:|---:|",
    ]
    left: Counter[tuple[str, str]] = Counter()
    whole = {path: part.ns for path, part in found}
    for path, part in found:
        for name, ns in part.by_name.items():
            if part.class_of[name] == OTHER:
                left[short(name), path] += ns
    ranked = sorted(left.items(), key=lambda item: (-item[1], item[0]))
    for (name, path), ns in ranked[:UNCLASSIFIED_SHOWN]:
        rows.append(f"| {name} | `{path}` | {ns / 1e6:.3f} ms | {_share(ns, whole[path])} |")
    if len(ranked) > UNCLASSIFIED_SHOWN:
        rest = ranked[UNCLASSIFIED_SHOWN:]
        rows.append(f"| {len(rest)} more | | {sum(ns for _, ns in rest) / 1e6:.3f} ms | |")
    return rows


def _classes_table(found: list[tuple[str, Totals]]) -> list[str]:
    rows = [
        "",
        "## Classes",
        "",
        "Over all captures; the three names with the most time of each class, without their arguments.",
        "",
        "| class | kernel time | names | largest |",
        "|---|---:|---:|---|",
    ]
    by_class: Counter[str] = Counter()
    by_base: dict[str, Counter[str]] = {}
    for _, part in found:
        by_class += part.by_class
        for name, ns in part.by_name.items():
            by_base.setdefault(part.class_of[name], Counter())[short(name)] += ns
    for class_, ns in _ranked(by_class):
        bases = _ranked(by_base[class_])
        largest = ", ".join(base for base, _ in bases[:3])
        rows.append(f"| {class_} | {ns / 1e6:.3f} ms | {len(bases)} | {largest} |")
    return rows


def document(folder: Path) -> str:
    """The page as text."""
    found = list(captures(folder))
    rows = _captures_table(found) + _unclassified_table(found) + _classes_table(found)
    return INTRODUCTION + "\n".join(rows) + "\n"


def main() -> int:
    """Write or check the page."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    folder = Path(arguments[0]) if arguments else ROOT.parent / "shared" / "traces"
    text = document(folder)
    if "--check" in sys.argv:
        return 0 if DOCUMENT.read_text() == text else 1
    DOCUMENT.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
