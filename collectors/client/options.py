"""The client's command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from collectors.client.events import DEFAULT_EMITTED
from collectors.options import common_options

_EPILOG = """\
examples:
  python -m collectors client --url http://127.0.0.1:8000 --model m --prompt "Tell a story." --max-tokens 128 \\
      --requests 50 --concurrency 4 --warmup 4 -o run
  python -m collectors client --url https://host/v1/chat/completions --model m --prompts prompts.txt --rate 5 \\
      --spacing poisson --seed 1 --requests 200 --api-key-env OPENAI_API_KEY

Exit code: 0 where every request completed, 1 where some did not (the log and the record say which and why),
2 for bad usage, 124 past --limit, 128 + number after a signal. The log is written in all cases but 2.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.description = (
        "Send requests to a streaming OpenAI-compatible endpoint and log when each event reached this client, "
        "read by read. The log is rank0.tokens.jsonl in the run's folder."
    )
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    common_options(parser)
    _what(parser.add_argument_group("what is asked"))
    _load(parser.add_argument_group("how it is sent"))
    _told(parser.add_argument_group("what is told"))


def _what(add: argparse._ArgumentGroup) -> None:
    add.add_argument(
        "--url",
        required=True,
        metavar="URL",
        help="the endpoint, or the server it is on (http://host:8000); no proxy is used",
    )
    add.add_argument(
        "--endpoint",
        choices=["completions", "chat"],
        help="which endpoint of a server (default: completions, or what --url says)",
    )
    add.add_argument("--model", required=True, metavar="NAME", help="the model's name in the requests")
    prompt = add.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt", metavar="TEXT", help="the prompt of every request")
    prompt.add_argument(
        "--prompts",
        metavar="FILE",
        help='prompts, used in turn: a line is a text, or JSON with "prompt" or "messages", and "max_tokens"',
    )
    add.add_argument(
        "--max-tokens",
        type=_at_least(1),
        metavar="N",
        help="most tokens of an answer (default: the server's)",
    )
    add.add_argument(
        "--field",
        action="append",
        default=[],
        metavar="NAME=JSON",
        help="a further field of the body, like temperature=0 or ignore_eos=true; may be repeated",
    )
    add.add_argument(
        "--no-usage",
        action="store_true",
        help="do not ask for stream_options.include_usage, for servers that refuse it",
    )
    add.add_argument(
        "--api-key-env",
        metavar="VARIABLE",
        help="name of the environment variable that holds the API key; the key is recorded nowhere",
    )
    add.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="'NAME: VALUE'",
        help="a further header; may be repeated; only its name is recorded",
    )


def _load(add: argparse._ArgumentGroup) -> None:
    add.add_argument("--requests", type=_at_least(1), metavar="N", help="how many (default: one per prompt)")
    add.add_argument(
        "--warmup",
        type=_at_least(0),
        default=0,
        metavar="N",
        help="the first N requests are marked as warm-up and left out of the summary's times (default: 0)",
    )
    how = add.add_mutually_exclusive_group()
    how.add_argument(
        "--concurrency",
        type=_at_least(1),
        default=1,
        metavar="N",
        help="closed loop: requests open at once (default: 1)",
    )
    how.add_argument(
        "--rate",
        type=_above_zero,
        metavar="R",
        help="open loop: requests per second, sent by the clock whether or not earlier ones have ended",
    )
    add.add_argument(
        "--spacing",
        choices=["fixed", "poisson"],
        default="fixed",
        help="with --rate: even spacing, or exponential gaps (default: fixed)",
    )
    add.add_argument("--seed", type=int, default=0, metavar="N", help="of --spacing poisson (default: 0)")
    add.add_argument(
        "--limit",
        type=_above_zero,
        metavar="S",
        help="end the run after S seconds: open requests are cut, others not sent (default: none)",
    )
    add.add_argument(
        "--request-limit",
        type=_above_zero,
        default=600.0,
        metavar="S",
        help="give a request up after S seconds (default: 600)",
    )


def _told(add: argparse._ArgumentGroup) -> None:
    add.add_argument(
        "--emitted-field",
        action="append",
        default=[],
        metavar="FIELD[:UNIT]",
        help="field of an event that holds when the server emitted it, with its unit: sent_us, timing.sent:ms; may be "
        f"repeated, the first one found counts (default: {', '.join(DEFAULT_EMITTED)})",
    )
    add.add_argument(
        "--keep-text",
        action="store_true",
        help="store prompts, answers and error messages, not only lengths and checksums",
    )


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{text} is below {least}")
        return value

    number.__name__ = "number"
    return number


def _above_zero(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value
