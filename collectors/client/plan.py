"""What the client asks and when: prompts, the body of each request, the schedule of an open loop."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from collectors.errors import CollectError
from collectors.secrets import is_secret

PATHS = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}
"""The endpoints and where OpenAI-compatible servers have them."""


@dataclass(frozen=True)
class Prompt:
    """What is asked: a text, or the messages of a chat. ``max_tokens``: this prompt's own, where the file tells it."""

    text: str | None
    messages: list[Any] | None = None
    max_tokens: int | None = None

    @property
    def content(self) -> str:
        """The text that is measured and hashed: the prompt, or its messages as compact JSON."""
        if self.text is not None:
            return self.text
        return json.dumps(self.messages, ensure_ascii=False, separators=(",", ":"))

    @property
    def sha256(self) -> str:
        """Checksum of ``content`` in UTF-8."""
        return hashlib.sha256(self.content.encode("utf-8", "surrogatepass")).hexdigest()


def endpoint(url: str, kind: str | None) -> tuple[str, str]:
    """The address to post to, and which kind it is (``completions`` or ``chat``).

    A URL may be whole, or the server's (``http://host:8000``, ``http://host:8000/v1``). Raises CollectError for one
    that is no http(s) URL, and for one that holds a login or a key: it would be recorded.
    """
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        login = "@" in parts.netloc
        (parts.hostname or "").encode("idna")
    except ValueError:
        valid, login = False, "@" in url
    if login or (not valid and "@" in url) or is_secret(url):
        raise CollectError(
            "--url",
            "holds a login or a key, which would be recorded",
            "leave it out of the URL and name an environment variable with --api-key-env",
        )
    if not valid or parts.fragment:
        raise CollectError(f"--url {url}", "is no http or https URL", "write it like http://127.0.0.1:8000")
    path = parts.path.rstrip("/")
    if path.endswith("/chat/completions"):
        found = "chat"
    elif path.endswith("/completions"):
        found = "completions"
    else:
        found = kind or "completions"
        path = path.removesuffix("/v1") + PATHS[found]
    if kind is not None and kind != found:
        raise CollectError(f"--endpoint {kind}", f"does not fit --url {url}", "leave one of them out")
    return parts._replace(path=path).geturl(), found


def read_prompts(path: str) -> list[Prompt]:
    """Prompts of a file, one per line: plain text, or a JSON object with ``prompt`` or ``messages``.

    Raises CollectError, with the line's number, for what cannot be used.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "is no UTF-8 text"
        raise CollectError(f"--prompts {path}", why or "cannot be read", "check the file") from error
    prompts = [_prompt(line, f"{path}, line {n}") for n, line in enumerate(lines, 1) if line.strip()]
    if not prompts:
        raise CollectError(f"--prompts {path}", "holds no prompt", "write one per line")
    return prompts


def _prompt(line: str, where: str) -> Prompt:
    if not line.lstrip().startswith("{"):
        return Prompt(line)
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CollectError(where, "begins like JSON but is none", "mend the line") from error
    strange = sorted(set(data) - {"prompt", "messages", "max_tokens"})
    text, messages, limit = data.get("prompt"), data.get("messages"), data.get("max_tokens")
    one = isinstance(text, str) if messages is None else isinstance(messages, list) and text is None
    whole = limit is None or (isinstance(limit, int) and not isinstance(limit, bool) and limit > 0)
    if strange or not one or not whole:
        why = f"has fields that are not known ({', '.join(strange)})" if strange else "is no prompt"
        raise CollectError(
            where, why, 'write {"prompt": "text"} or {"messages": [...]}, with "max_tokens" if you like'
        )
    return Prompt(text, messages, limit)


def body(
    prompt: Prompt, kind: str, model: str, max_tokens: int | None, usage: bool, fields: Mapping[str, Any]
) -> bytes:
    """The JSON body of a request. ``fields`` come last and win. Raises CollectError for messages to ``completions``."""
    data: dict[str, Any] = {"model": model}
    if kind == "chat":
        data["messages"] = prompt.messages or [{"role": "user", "content": prompt.text}]
    elif prompt.text is None:
        raise CollectError("--prompts", "holds messages, which are for a chat", "pass --endpoint chat")
    else:
        data["prompt"] = prompt.text
    limit = max_tokens if prompt.max_tokens is None else prompt.max_tokens
    if limit is not None:
        data["max_tokens"] = limit
    data["stream"] = True
    if usage:
        data["stream_options"] = {"include_usage": True}
    return json.dumps(data | dict(fields), ensure_ascii=False).encode("utf-8", "surrogatepass")


def schedule(requests: int, rate_per_s: float, spacing: str, seed: int) -> list[int]:
    """When each request of an open loop is due, ns after the start; the first one at once.

    ``fixed``: evenly. ``poisson``: exponential gaps of mean ``1 / rate_per_s``, the same for the same seed.
    """
    if spacing == "fixed":
        return [round(number * 1e9 / rate_per_s) for number in range(requests)]
    draw = random.Random(seed)
    due, times = 0.0, []
    for _ in range(requests):
        times.append(round(due * 1e9))
        due += draw.expovariate(rate_per_s)
    return times


def digest(prompts: Sequence[Prompt]) -> str:
    """One checksum over the checksums of all prompts, in order."""
    return hashlib.sha256("".join(prompt.sha256 for prompt in prompts).encode()).hexdigest()
