"""The first match found without trying all patterns is the first match."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.kernel_names import base_name, full_name
from analyzer.rules import OTHER, builtin_rules
from analyzer.rules.search import FirstMatch, Match, plain_texts
from tests.rules.names import names


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("flash_fwd", ("flash_fwd",)),
        ("^Foo(?:Barr|Bazzz)", ("bazzz", "barr")),  # either of them
        ("ab?cdef", ("cdef",)),
        ("ab+cdef", ("cdef",)),
        ("abc{2}def", ("def",)),
        ("abcd(?:efgh)?", ("abcd",)),
        ("abc|de", ()),  # the second alternative is too short to look for
        (r"abc\ddef_", ("def_",)),
        (r"a\.b\(c", ("a.b(c",)),
        ("[abc]+def", ("def",)),
        ("(?<!xyzzy)abc", ("abc",)),
        ("(?!xyzzy)abc", ("abc",)),
        ("(?-i:Sampl(?:e|ing))", ("sampl",)),
        ("(?x) a b c d", ()),  # flags change what is text
        (r"\x41bcd", ()),
    ],
)
def test_text_that_every_match_holds(pattern: str, texts: tuple[str, ...]) -> None:
    assert sorted(plain_texts(pattern)) == sorted(texts)


PIECES = st.sampled_from(
    [
        "ab",
        "abc",
        "B_c",
        "x",
        "::",
        r"\w*",
        "a?",
        "(?:ab|cab)",
        "(?:bc)?",
        "[bc]+",
        "^",
        "c{2}",
        "(?-i:A)",
        "|",
    ]
)
PATTERNS = (
    st.lists(PIECES, min_size=1, max_size=5).map("".join).filter(lambda p: re.compile(p).search("") is None)
)
NAMES = st.text("abcABC_x:", max_size=12)


@given(st.lists(st.lists(PATTERNS, min_size=1, max_size=3), max_size=5), st.lists(NAMES, max_size=8))
@settings(max_examples=300, deadline=None)
def test_the_same_as_trying_all_in_order(patterns: list[list[str]], texts: list[str]) -> None:
    matches = [Match(tuple(part), "full" if at % 2 else "base") for at, part in enumerate(patterns)]
    first = FirstMatch(matches)
    for text in texts:
        expected = next((at for at, match in enumerate(matches) if match(text, text[::-1])), None)
        assert first(text, text[::-1]) == expected


@given(PATTERNS, NAMES)
@settings(max_examples=500, deadline=None)
def test_a_match_holds_one_of_the_texts(pattern: str, name: str) -> None:
    texts = plain_texts(pattern)
    if texts and re.search(pattern, name, re.IGNORECASE):
        assert any(text in name.lower() for text in texts)


def test_the_built_in_rules_one_after_the_other() -> None:
    rules = builtin_rules()
    for name, _ in [*names("kernel_names.txt"), *names("held_out_names.txt")]:
        base, full = base_name(name), full_name(name)
        communication = next((rule for rule in rules.collectives if rule.match(base, full)), None)
        if communication is not None and not communication.local:
            expected = communication.class_
        else:
            expected = next((rule.class_ for rule in rules.kernels if rule.match(base, full)), OTHER)
        assert rules.kernel_class(name) == expected, name
