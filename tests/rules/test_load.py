"""Rules files: precedence, what they can add, and what an error says."""

from __future__ import annotations

import pickle
from importlib import resources
from pathlib import Path

import pytest

from analyzer.errors import UsageError
from analyzer.rules import builtin_rules, load_rules
from analyzer.rules.checks import repeats_a_repetition

MINE = """
[[kernel]]
class = "rank_join"
pattern = '^probe_'
note = "hash joins"

[[kernel]]
class = "gemm"
pattern = ['^frobnicate', 'spam(?:eggs)?']

[[collective]]
pattern = '^my_ring_'
operation = "all_gather"
family = "mine"
fused = true

[[collective]]
pattern = 'cross_device_reduce'
local = true

[[operation]]
operation = "all_reduce"
pattern = 'gossip'

[[copy]]
pattern = '^blit'

[thresholds]
supported_share = 0.2
"""


@pytest.fixture
def write(tmp_path: Path):
    def file(text: str | bytes, name: str = "mine.toml") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return file


def test_a_users_rules_come_first(write) -> None:
    rules, builtin = load_rules([write(MINE)]), builtin_rules()
    assert (builtin.kernel_class("probe_GPU2"), rules.kernel_class("probe_GPU2")) == ("other", "rank_join")
    assert rules.kernel_class("void Frobnicate<attention>(int)") == "gemm"
    assert rules.kernel_class("flash_fwd_kernel") == "attention"  # the built-in rules still hold
    assert rules.is_collective("my_ring_kernel")
    assert rules.kernel_class("my_ring_kernel") == "collective"
    assert (rules.collective_operation("my_ring_kernel"), rules.collective_family("my_ring_kernel")) == (
        "all_gather",
        "mine",
    )
    assert rules.is_fused_collective("my_ring_kernel")
    assert not rules.is_collective("void vllm::cross_device_reduce_1stage<float>(x)")
    assert rules.is_copy_kernel("blit_rows")
    assert rules.metadata_operation("gossip_v2") == "all_reduce"
    assert (rules.thresholds["supported_share"], rules.thresholds["contradicted_share"]) == (0.2, 0.02)


def test_of_several_files_the_first_ones_rules_and_the_last_ones_thresholds_win(write) -> None:
    rule = "[[kernel]]\nclass = {!r}\npattern = 'xyz'\n[thresholds]\nsupported_share = {}\n"
    one, two = write(rule.format("one", 0.3), "one.toml"), write(rule.format("two", 0.4), "two.toml")
    rules = load_rules([one, two])
    assert (rules.kernel_class("xyz"), rules.thresholds["supported_share"]) == ("one", 0.4)
    assert rules.sources == (str(one), str(two))


def test_one_file_by_its_path(write) -> None:
    path = write(MINE)
    assert load_rules(path) == load_rules(str(path)) == load_rules([path])


def test_no_file_is_the_built_in_rules() -> None:
    assert load_rules([]) is builtin_rules()


def test_the_built_in_rules_pass_the_checks_of_a_users_file(write) -> None:
    text = resources.files("analyzer.rules").joinpath("builtin.toml").read_text()
    assert len(load_rules([write(text)]).kernels) == 2 * len(builtin_rules().kernels)


def test_rules_travel_between_processes(write) -> None:
    rules = load_rules([write(MINE)])
    rules.kernel_class("probe_GPU2")
    again = pickle.loads(pickle.dumps(rules))
    assert again == rules
    assert again.kernel_class("probe_GPU2") == "rank_join"


KERNEL = "[[kernel]]\nclass = 'gemm'\npattern = '{}'\n"


@pytest.mark.parametrize(
    ("text", "where", "why", "hint"),
    [
        ("x = ", "", "is no TOML", "docs/rules.md"),
        (b"\xff\xfe", "byte 0", "is no UTF-8", "save it as UTF-8"),
        ("#" * 1_000_001, "", "larger than 1,000,000 bytes", "give a rules file"),
        ("[kernels]", "", "'kernels' has no meaning", "use kernel, collective"),
        ("kernel = 3", "kernel", "not a list of rules", "[[kernel]]"),
        ("[kernel]\nclass = 'x'", "kernel", "not a list of rules", "[[kernel]]"),
        (KERNEL.format("a") + KERNEL.format("("), "kernel rule 2", "'(' is no regular expression", "escape special"),
        (KERNEL.format("[[a]"), "kernel rule 1", "nested set", "escape special"),
        (KERNEL.format(""), "kernel rule 1", "the pattern is empty", "remove the rule"),
        (KERNEL.format(".*"), "kernel rule 1", "'.*' matches every name", "must stand in the name"),
        (KERNEL.format("(a+)+b"), "kernel rule 1", "exponential time", "without the outer"),
        (KERNEL.format("a" * 2001), "kernel rule 1", "longer than 2000 characters", "list of shorter patterns"),
        ("[[kernel]]\nclass = 'x'\npattern = 3", "kernel rule 1", "no string", "write pattern"),
        ("[[kernel]]\nclass = 'x'\npattern = []", "kernel rule 1", "no string", "write pattern"),
        ("[[kernel]]\nclass = 'x'\npattern = ['a', 3]", "kernel rule 1", "no string", "write pattern"),
        ("[[kernel]]\nclass = 'x'", "kernel rule 1", "has no pattern", "pattern ="),
        ("[[kernel]]\npattern = 'x'", "kernel rule 1", "has no class", "class ="),
        ("[[kernel]]\nclass = 3\npattern = 'x'", "kernel rule 1", "class is no string", "write class"),
        ("[[kernel]]\nclass = 'My Class'\npattern = 'x'", "kernel rule 1", "is no class name", "lower-case"),
        ("[[kernel]]\nclass = 'collective'\npattern = 'x'", "kernel rule 1", "no class of local", "[[collective]]"),
        ("[[kernel]]\nclass = 'other'\npattern = 'x'", "kernel rule 1", "has its own meaning", "choose another"),
        ("[[kernel]]\nclass = 'x'\npattern = 'x'\non = 'short'", "kernel rule 1", "on = 'short' is unknown", "base"),
        ("[[kernel]]\nclass = 'x'\npattern = 'x'\nnote = 1", "kernel rule 1", "note is no string", "write note"),
        ("[[kernel]]\nclass = 'x'\npatern = 'x'", "kernel rule 1", "'patern' has no meaning", "use class, pattern"),
        ("[[collective]]\npattern = 'x'\nfused = 1", "collective rule 1", "neither true nor false", "fused = true"),
        ("[[collective]]\npattern = 'x'\nclass = 'gemm'", "collective rule 1", "none of a collective", "collective.ep"),
        ("[[collective]]\npattern = 'x'\noperation = 'All Reduce'", "collective rule 1", "is no name", "lower-case"),
        ("[[collective]]\npattern = 'x'\nlocal = true\nfused = true", "collective rule 1, which is local", "fused", ""),
        ("[[operation]]\npattern = 'x'", "operation rule 1", "has no operation", "operation ="),
        ("[[copy]]\npattern = 'x'\nclass = 'y'", "copy rule 1", "'class' has no meaning", "use pattern"),
        ("[thresholds]\nsupported = 0.2", "thresholds.supported", "no threshold of this name", "supported_share"),
        ("[thresholds]\nsupported_share = 2", "thresholds.supported_share", "is not a share", "from 0 to 1"),
        ("[thresholds]\nsupported_share = 'x'", "thresholds.supported_share", "is no number", "supported_share = 0.1"),
        ("[thresholds]\nsupported_share = true", "thresholds.supported_share", "is no number", "0.1"),
        ("[thresholds]\nsupported_share = nan", "thresholds.supported_share", "is not a share", "from 0 to 1"),
        ("thresholds = 3", "thresholds", "is no table", "[thresholds]"),
    ],
)  # fmt: skip
def test_an_error_names_file_place_reason_and_way_out(write, text, where: str, why: str, hint: str) -> None:
    path = write(text)
    with pytest.raises(UsageError) as caught:
        load_rules([path])
    error = caught.value
    assert error.path == str(path)
    assert (error.where, why in error.why, hint in error.hint) == (where, True, True), str(error)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load_rules([tmp_path / "absent.toml"])


@pytest.mark.parametrize(
    ("pattern", "repeats"),
    [
        ("(a+)+", True), ("(a*)*b", True), (r"(\w+_)+", True), (r"(?:\w+|::)*", True), ("((a+)b)+", True),
        ("(a{2,})*", True), ("(?:.*::)+", True), (r"(?:[^<]+,)+", True), (r"(?:\w+:*)*", True),
        (r"(?:\w+::)*x", False), ("a+b+", False), ("(?:a|b)*c", False), ("(a+)?", False), (r"\(a+\)+", False),
        ("[(a+)]+", False), ("(?:ab)+c*", False), ("(a+){2,3}", False),
    ],
)  # fmt: skip
def test_a_repetition_in_a_repetition(pattern: str, repeats: bool) -> None:
    assert repeats_a_repetition(pattern) == repeats
