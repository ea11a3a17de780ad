"""How kernel names are spelled: one normal form for what nsys, Kineto and ROCm write differently.

What a name *means* is not decided here but by the rules (:mod:`analyzer.rules`).
"""

from __future__ import annotations

import re
from functools import cache

LONGEST_BASE, LONGEST_FULL = 512, 4096
"""Characters of a name that are looked at; names reach 20 kB, all of it template arguments."""

_ANONYMOUS = re.compile(r"\(anonymous namespace\)::|<unnamed>::|_GLOBAL__N__?\w*?::")
_RETURN_TYPE = re.compile(
    r"^(?:(?:static|inline|const|unsigned|signed|__global__) +)*"
    r"(?:void|bool|char|short|int|long|float|double|auto) +"
)
_DEPENDENT_TYPE = re.compile(r"^(?:typename +)?std::(?:\w+::)*(?:enable_if|conditional)\w*<")
_CAST = re.compile(
    r"\((?:(?:unsigned|signed) )?(?:bool|char|short|int|long|long long|unsigned|signed)\)(?=-?\d)"
)
_LAMBDA = re.compile(r"\[lambda[^\[\]]*\(instance \d+\)\]|\{lambda[^{}]*#\d+\}|'lambda\d*'")
_CLONE = re.compile(r"(?: \[clone [^\]]*\]|\.kd)+$")
_CUTE_ARGUMENTS = re.compile(r"_object_at_|_(?:tensor(?:ptr|\d)|CopyAtom|TiledCopy|TiledMMA)")
_INTEGER = re.compile(r"\b(\d+)(?:u|l|ul|ll|ull)\b", re.IGNORECASE)
_QUALIFIER = re.compile(r"\b(?:const|void|typename)\b")
_TRUE, _FALSE = re.compile(r"\btrue\b"), re.compile(r"\bfalse\b")
_LENGTH = re.compile(r"(\d+)(?=[A-Za-z_])")
_NO_IDENTIFIER = re.compile(r"L[a-z]n?\d+E|[ST]\d*_|DF\d+[b_]?|A\d+_|Lb[01]E")


def _identifiers(text: str, at: int, *, adjacent: bool) -> tuple[list[str], int]:
    """Length-prefixed identifiers of a mangled name from ``at`` on, and where they end.

    ``adjacent``: stop at the first thing that is none, else skip what is none.
    """
    found: list[str] = []
    while at < len(text):
        match = _LENGTH.match(text, at)
        if match is not None:
            end = match.end() + int(match[1])
            found.append(text[match.end() : end])
            at = end
            continue
        if adjacent:
            break
        skipped = _NO_IDENTIFIER.match(text, at)
        at = at + 1 if skipped is None else skipped.end()
    return found, at


def _mangled(name: str) -> tuple[str, str]:
    """Base and full form of an Itanium-mangled name (``_ZN5aiter3fooI3BarE`` -> ``aiter::foo``, ``..<Bar>``)."""
    start = re.match(r"_ZN?[KVr]*(?:St)?", name)
    parts, at = _identifiers(name, start.end() if start else 2, adjacent=True)
    base = "::".join(part for part in parts if not part.startswith("_GLOBAL__N_"))
    if not base:
        return name, name
    inner, _ = _identifiers(name[:LONGEST_FULL], at, adjacent=False)
    return base, f"{base}<{', '.join(inner)}>"


def _function(text: str) -> str:
    """``text`` without a leading return type that itself has template arguments."""
    open_: list[str] = []
    last = 0
    for at, letter in enumerate(text):
        if letter == "(" and not open_ and at > last:
            break
        if letter in "<([{":
            open_.append(letter)
        elif letter == ">":  # a comparison where it stands in parentheses
            if open_ and open_[-1] == "<":
                open_.pop()
        elif letter in ")]}":
            while open_ and open_.pop() == "<":
                pass
        elif letter == " " and not open_:
            last = at + 1
    return text[last:]


def _plain(name: str) -> str:
    """A demangled name without return type, anonymous namespaces and clone suffixes."""
    text = _CLONE.sub("", name) if name.endswith(("]", ".kd")) else name
    if "anonymous" in text or "<unnamed>" in text or "_GLOBAL_" in text:
        text = _ANONYMOUS.sub("", text)
    text = _RETURN_TYPE.sub("", text, count=1)
    return _function(text) if _DEPENDENT_TYPE.match(text) else text


@cache
def _forms(name: str) -> tuple[str, str]:
    """Base name and full name."""
    if name.startswith("_Z"):
        base, full = _mangled(name)
        return base[:LONGEST_BASE], full[:LONGEST_FULL]
    plain = _plain(name[:LONGEST_FULL])
    base = re.split(r"[<(]", plain, maxsplit=1)[0].strip()[:LONGEST_BASE] or name[:LONGEST_BASE]
    if base.startswith("kernel_cutlass_"):  # CuTe DSL: the types of the arguments are part of the name
        base = _CUTE_ARGUMENTS.split(base, maxsplit=1)[0]
    full = _CAST.sub("", plain)
    return base, _LAMBDA.sub("lambda", full) if "lambda" in full else full


def base_name(name: str) -> str:
    """Namespace and function of a kernel name, without return type, template and argument text."""
    return _forms(name)[0]


def full_name(name: str) -> str:
    """The whole name in one spelling, at most 4096 characters.

    Without return type and anonymous namespaces, casts of template arguments (``(int)4`` -> ``4``) and the
    two ways to write a lambda (-> ``lambda``). Of a mangled name the identifiers, in order.
    """
    return _forms(name)[1]


@cache
def loose_name(name: str) -> str:
    """The full name without what demanglers write differently, to find a kernel in another tool's output.

    NVIDIA's tools write ``k<(bool)1, (unsigned long)2, char *>(T2, const int *)``, Kineto ``k<true, 2ul, char*>(char*,
    int const*)``. So no argument lists, integer suffixes, const or spaces; true and false are 1 and 0.
    """
    full = full_name(name)
    text = _outside_parentheses(full)
    text = _INTEGER.sub(r"\1", _QUALIFIER.sub("", text))
    return re.sub(r"\s+", "", _FALSE.sub("0", _TRUE.sub("1", text))) or full


def _outside_parentheses(text: str) -> str:
    kept: list[str] = []
    depth = 0
    for letter in text:
        if letter == ")":
            depth = max(depth - 1, 0)
        elif letter == "(":
            depth += 1
        elif not depth:
            kept.append(letter)
    return "".join(kept)
