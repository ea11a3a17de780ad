"""What counters and ledger add to the evidence for the hypotheses about peaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from analyzer.explain.bytes.ledger_rates import Judged, LedgerRates
from analyzer.explain.bytes.rank_rates import Counters, RankRates
from analyzer.explain.verdicts.facts import DRAM_COUNTERS, LEDGER_BYTES, LEDGER_FLOP, TENSOR_COUNTERS
from analyzer.explain.verdicts.hypotheses import Basis, RankEvidence

BANDWIDTH, COMPUTE = "bandwidth-bound", "compute-bound"
PEAKS = {BANDWIDTH: "memory bandwidth", COMPUTE: "arithmetic peak"}
ALONE = "Nsight Compute ran each kernel alone, which can change what the caches serve"
AS_DOCUMENTED = "samples are read as documented; no real export with them was at hand to test against"
_COUNTED = {BANDWIDTH: DRAM_COUNTERS, COMPUTE: TENSOR_COUNTERS}
_LEDGER = {BANDWIDTH: LEDGER_BYTES, COMPUTE: LEDGER_FLOP}


def with_counters(known: RankEvidence, counters: Counters, at: float) -> RankEvidence:
    """The evidence with what its shares by counters are."""
    launches = counters.launches is not None
    words = {
        BANDWIDTH: "by " + _sources(
            "bytes of Nsight Compute over durations of the trace" if launches else "",
            "sampled DRAM throughput" if counters.dram is not None else "",
        ),
        COMPUTE: "by the activity of arithmetic pipes, " + _sources(
            "as Nsight Compute saw it" if launches else "", "sampled" if counters.tensor is not None else ""
        ),
    }  # fmt: skip
    sampled = {BANDWIDTH: counters.dram, COMPUTE: counters.tensor}
    basis = {
        id_: Basis(
            "measurement",
            f"path time of kernels at {100 * at:g} % of the {PEAKS[id_]} or more, {words[id_]}",
            "; ".join([ALONE] * launches + [AS_DOCUMENTED] * (sampled[id_] is not None)),
        )
        for id_ in PEAKS
        if _COUNTED[id_] in known.facts
    }
    return replace(known, basis={**known.basis, **basis}) if basis else known


def _sources(*words: str) -> str:
    return " and ".join(word for word in words if word)


def with_ledger(known: RankEvidence, rates: LedgerRates, at: float) -> RankEvidence:
    """The evidence with the shares that the ledger's amounts prove. Counters go before it: they are measured."""
    for id_, judged in ((BANDWIDTH, rates.bandwidth), (COMPUTE, rates.compute)):
        if _COUNTED[id_] in known.facts:
            continue
        known = _with(known, id_, judged, at)
    return known


def _with(known: RankEvidence, id_: str, judged: Judged, at: float) -> RankEvidence:
    if judged.shares is None:
        told = f"the ledger does not measure it: {judged.why}"
        return replace(known, why_not={**known.why_not, id_: told})
    what = "bytes fix" if id_ == BANDWIDTH else "arithmetic fixes"
    basis = Basis(
        "model",
        f"path time of kernels at {100 * at:g} % of the {PEAKS[id_]} or more, as far as the ledger's {what} it;"
        " the value is the middle of the interval",
        "a model: the ledger's figures, not counters",
    )
    return replace(
        known,
        facts=known.facts | {_LEDGER[id_]},
        shares={**known.shares, id_: judged.shares},
        evidence={**known.evidence, id_: []},
        basis={**known.basis, id_: basis},
    )


def with_ledgers(
    evidence: Mapping[str, RankEvidence],
    rates: RankRates,
    applies: Mapping[str, bool],
    why_not: str,
    at: float,
) -> dict[str, RankEvidence]:
    """By phase. ``applies``: to which phases the ledger does; ``why_not``: why not to the others."""
    result = {}
    for phase, known in evidence.items():
        if not applies.get(phase, False):
            result[phase] = replace(known, why_not={**dict.fromkeys(PEAKS, why_not), **known.why_not})
        elif phase in rates.ledger:
            result[phase] = with_ledger(known, rates.ledger[phase], at)
        else:
            nothing = (
                f"the ledger holds nothing of rank {known.rank}"
                if rates.device_work
                else f"no device work of rank {known.rank} was recorded"
            )
            result[phase] = replace(known, why_not={**dict.fromkeys(PEAKS, nothing), **known.why_not})
    return result
