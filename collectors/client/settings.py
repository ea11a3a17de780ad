"""The client's options, checked: what is sent, and what of it may be recorded."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from collectors.client.answer import Target
from collectors.client.events import DEFAULT_EMITTED, emitted_field
from collectors.client.plan import Prompt, body, endpoint, read_prompts
from collectors.errors import CollectError
from collectors.manifest import Pin, declared
from collectors.secrets import HIDDEN, redact, shown_command

_OWN_FIELDS = frozenset({"model", "prompt", "messages", "stream"})
_OWN_HEADERS = frozenset({"accept-encoding", "connection", "content-length", "host", "transfer-encoding"})
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, token
_HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")
_SEARCHED = 4
"""Values of headers shorter than this are not searched for in texts: they are no secrets but would hide words."""

_RECORDED = (
    "output", "endpoint", "model", "prompts", "max_tokens", "requests", "warmup", "concurrency", "rate", "spacing",
    "seed", "limit", "request_limit",
)  # fmt: skip
"""Options whose values stand in the record."""


@dataclass(frozen=True)
class Settings:
    """Everything a run needs. ``command``: what of the command line may be recorded."""

    output: str
    command: list[str]
    pins: dict[str, Pin]
    target: Target
    endpoint: str
    model: str
    prompts: list[Prompt]
    bodies: list[bytes]
    requests: int
    warmup: int
    concurrency: int
    rate_per_s: float | None
    spacing: str
    seed: int
    limit_s: float | None
    max_tokens: int | None
    fields: dict[str, Any]
    usage: bool
    header_names: list[str]


def settings(arguments: argparse.Namespace, environment: Mapping[str, str]) -> Settings:
    """The options, checked. Raises CollectError."""
    url, kind = endpoint(arguments.url, arguments.endpoint)
    headers, secrets = _headers(arguments, environment)
    prompts = [Prompt(arguments.prompt)] if arguments.prompt is not None else read_prompts(arguments.prompts)
    fields = _fields(arguments.field)
    usage = not arguments.no_usage
    requests = arguments.requests or len(prompts)
    if arguments.warmup >= requests:
        raise CollectError(
            f"--warmup {arguments.warmup}", f"leaves none of {requests} requests", "send more with --requests"
        )
    try:
        pins = declared(arguments.pin)
    except ValueError as error:
        raise CollectError("--pin", str(error), "see --help for the names") from error
    words = arguments.emitted_field or DEFAULT_EMITTED
    hide = _hiding(secrets)
    return Settings(
        output=arguments.output,
        command=_recorded(arguments, url, hide),
        pins=pins,
        target=Target(
            url=url,
            headers=headers,
            emitted=[emitted_field(word) for word in words],
            keep_text=arguments.keep_text,
            hide=hide,
            scrub=lambda text: redact(hide(text)),
            request_limit_s=arguments.request_limit,
        ),
        endpoint=kind,
        model=redact(hide(arguments.model)),
        prompts=prompts,
        bodies=[body(one, kind, arguments.model, arguments.max_tokens, usage, fields) for one in prompts],
        requests=requests,
        warmup=arguments.warmup,
        concurrency=arguments.concurrency,
        rate_per_s=arguments.rate,
        spacing=arguments.spacing,
        seed=arguments.seed,
        limit_s=arguments.limit,
        max_tokens=arguments.max_tokens,
        fields=fields,
        usage=usage,
        header_names=sorted(headers),
    )


def _headers(
    arguments: argparse.Namespace, environment: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """All headers of a request, and the values that must appear nowhere."""
    headers = {
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "content-type": "application/json",
    }
    secrets: list[str] = []
    for word in arguments.header:
        name, colon, value = word.partition(":")
        name, value = name.strip(), value.strip()
        if not colon or not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise CollectError("--header", "is not 'NAME: VALUE' in ASCII", "write it like 'X-Team: serving'")
        if name.lower() in _OWN_HEADERS:
            raise CollectError(f"--header {name}", "is the client's own", "leave it out")
        headers[name.lower()] = value
        secrets += [value, *value.split()] if len(value) >= _SEARCHED else []
    name = arguments.api_key_env
    if name is not None and not name.isidentifier():
        raise CollectError("--api-key-env", "is no variable's name", "pass the name, not the key itself")
    if name is not None:
        key = environment.get(name, "").strip()
        if not _HEADER_VALUE.fullmatch(key):
            why = "holds no key in ASCII" if key else "is not set"
            raise CollectError(f"--api-key-env {name}", why, f"export {name} before you start the client")
        headers["authorization"] = f"Bearer {key}"
        secrets.append(key)
    return headers, [secret for secret in secrets if len(secret) >= _SEARCHED]


def _hiding(secrets: Sequence[str]) -> Callable[[str], str]:
    """Takes these values out of a text, the longest first."""
    if not secrets:
        return lambda text: text
    pattern = re.compile("|".join(re.escape(one) for one in sorted(set(secrets), key=len, reverse=True)))
    return lambda text: pattern.sub(HIDDEN, text)


def _fields(words: Sequence[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name or name in _OWN_FIELDS:
            raise CollectError(
                f"--field {name}", "is not NAME=JSON, or is the client's own field", "write it like top_k=1"
            )
        try:
            fields[name] = json.loads(text)
        except (ValueError, RecursionError):
            fields[name] = text
    if fields.get("n", 1) != 1:
        raise CollectError(
            "--field n",
            "asks for several answers in one stream, whose tokens the log would not tell apart",
            "send more requests with --requests and --concurrency",
        )
    return fields


def _recorded(arguments: argparse.Namespace, url: str, hide: Callable[[str], str]) -> list[str]:
    """The command line without prompts, keys and the values of headers, as it may be recorded."""
    words = ["python", "-m", "collectors", "client", "--url", url]
    for name in _RECORDED:
        value = getattr(arguments, name)
        if value is not None and not (name == "concurrency" and arguments.rate is not None):
            words += [f"--{name.replace('_', '-')}", f"{value:g}" if isinstance(value, float) else str(value)]
    if arguments.prompt is not None:
        words += ["--prompt", f"sha256:{Prompt(arguments.prompt).sha256}"]
    for word in arguments.field:
        words += ["--field", word]
    for word in arguments.emitted_field:
        words += ["--emitted-field", word]
    for word in arguments.header:
        words += ["--header", f"{word.partition(':')[0].strip()}: {HIDDEN}"]
    words += ["--keep-text"] * arguments.keep_text + ["--no-usage"] * arguments.no_usage
    return shown_command([hide(word) for word in words])
