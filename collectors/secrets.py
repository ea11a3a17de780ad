"""What looks like a secret: kept out of manifests, removed from text that is shown or stored. Pure functions.

Profilers copy environment variables and command lines into their captures; messages built from them
can hold credentials. The rules here prefer to hide too much: a hidden word costs a reader little.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

HIDDEN = "[redacted]"

# The word may be a part of the key (HF_TOKEN, AWS_SECRET_ACCESS_KEY, api-key, --password).
_SECRET_WORD = r"(?:token|secret|passw(?:or)?d|passphrase|passwd|pwd|credential|auth|cookie|key)s?"
_KEY = rf"(?<![\w.-])(?P<key>(?=[\w.-]*{_SECRET_WORD})[\w.-]++)"  # ++: linear in the text
_SCHEME = r"(?:(?:Bearer|Basic)\s+)?"
_VALUE = rf"""(?P<value>{re.escape(HIDDEN)}|"[^"]*"|'[^']*'|[^\s,;&"'\]}})]+)"""

_KEY_VALUE = re.compile(rf"""{_KEY}(?P<join>["']?\s*[=:](?![=:])\s*|["']\s*,\s*){_SCHEME}{_VALUE}""", re.I)
_FLAG = re.compile(rf"(?<![\w.-])(?P<key>(?=--?[\w-]*{_SECRET_WORD})[\w-]++)(?P<join>\s+){_VALUE}", re.I)

# ``num_tokens=128`` in the name of a range is a size; a password may well be a number.
_COUNT_KEY = re.compile(r"(token|key)s?$", re.I)
_COUNT = re.compile(r"\d{1,9}")

_BEARER = re.compile(r"\b(?P<scheme>Bearer|Basic)\s+[\w.~+/=-]{6,}", re.I)
_URL_LOGIN = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]{0,20}://)[^\s/@:]*:[^\s/@]+@", re.I)

# Prefixes that issuers put on their credentials so that scanners can find them.
_ISSUED = re.compile(
    r"\b(?:"
    r"hf_[A-Za-z0-9]{6,}"  # Hugging Face
    r"|sk-[A-Za-z0-9_-]{6,}"  # OpenAI, Anthropic and others
    r"|nvapi-[A-Za-z0-9_-]{6,}"  # NVIDIA
    r"|gh[pousr]_[A-Za-z0-9]{6,}|github_pat_\w{6,}"  # GitHub
    r"|glpat-[\w-]{6,}"  # GitLab
    r"|(?:AKIA|ASIA)[A-Z0-9]{8,}"  # AWS
    r"|xox[abeprs]-[\w-]{6,}"  # Slack
    r"|AIza[\w-]{20,}"  # Google
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"  # a signed JSON web token
    r")"
)


def _hide_value(match: re.Match[str]) -> str:
    if _COUNT_KEY.search(match["key"]) and _COUNT.fullmatch(match["value"]):
        return match[0]
    return f"{match['key']}{match['join']}{HIDDEN}"


def redact(text: str) -> str:
    """``text`` with everything that looks like a credential replaced by ``[redacted]``.

    Covers ``KEY=value``, ``key: value`` and ``--key value`` where the key's name speaks of a token, secret,
    password or key (small numbers of tokens and keys are counts and stay), ``Bearer``/``Basic`` headers,
    logins in URLs, and the prefixes of known issuers. Linear in the length of the text.
    """
    text = _URL_LOGIN.sub(rf"\g<scheme>{HIDDEN}@", text)
    text = _KEY_VALUE.sub(_hide_value, text)
    text = _FLAG.sub(_hide_value, text)
    text = _BEARER.sub(rf"\g<scheme> {HIDDEN}", text)
    return _ISSUED.sub(HIDDEN, text)


RECORDED = re.compile(
    r"(?:NCCL|CUDA|CUBLAS(?:LT)?|CUDNN|NVSHMEM|NVTE|TORCH|PYTORCH|TORCHINDUCTOR|TRITON|VLLM|SGLANG|SGL|TRTLLM|TLLM|OMP)_\w+"
)
"""Environment variables that change how an engine runs: only these are ever recorded."""


def recorded_environment(variables: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The variables of the allow-list with their values, and the names of those whose value looks like a secret.

    Everything else in the environment is none of a capture's business and leaves no trace, not even its name.
    """
    kept: dict[str, str] = {}
    withheld: list[str] = []
    for name in sorted(variables):
        if not RECORDED.fullmatch(name):
            continue
        if is_secret(variables[name], name):
            withheld.append(name)
        else:
            kept[name] = variables[name]
    return kept, withheld


def is_secret(value: str, name: str = "") -> bool:
    """Whether a value, or its name, speaks of a credential."""
    text = f"{name}={value}" if name else value
    return redact(text) != text


def shown_command(words: Sequence[str]) -> list[str]:
    """A command line whose credentials are replaced, word for word otherwise."""
    result: list[str] = []
    for word in words:
        after_flag = result and result[-1].startswith("-") and not word.startswith("-")
        pair = [result[-1], word] if after_flag else [word]
        joined = " ".join(pair)
        hidden = redact(joined)
        if hidden == joined:
            result.append(word)
        elif redact(word) != word:
            result.append(redact(word))
        else:
            result.append(HIDDEN)
    return result
