from __future__ import annotations

import time

import pytest

from collectors.secrets import HIDDEN, recorded_environment, redact, shown_command

SECRETS = [
    ("HF_TOKEN=hunter2value rest", "hunter2value"),
    ("export AWS_SECRET_ACCESS_KEY=abc/def+ghi", "abc/def+ghi"),
    ("api_key: 'two words'", "two words"),
    ('{"password": "p4ss"}', "p4ss"),
    ("--auth-token s3cret run", "s3cret"),
    ("serve --api-key=s3cret", "s3cret"),
    ("Authorization: Bearer abcdef123456", "abcdef123456"),
    ("sent Bearer abcdef123456", "abcdef123456"),
    ("loaded with hf_AbCdEf123456", "hf_AbCdEf123456"),
    ("key is sk-proj-abc123DEF456", "sk-proj-abc123DEF456"),
    ("ghp_0123456789abcdef used", "ghp_0123456789abcdef"),
    ("AKIAIOSFODNN7EXAMPLE used", "AKIAIOSFODNN7EXAMPLE"),
    ("PASSWORD=1234", "1234"),
    ("clone https://user:pa55@host/repo", "pa55"),
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_secrets_disappear(text: str, secret: str) -> None:
    assert secret not in redact(text)
    assert HIDDEN in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "Profiling has started.",
        "No NVTX events collected. Does the process use NVTX?",
        "Number of CUPTI events produced: 41237",
        "Installed CUDA driver version (12.0) is not supported by this build of Nsight Systems.",
        "perf event paranoid level is 2. \nChange the paranoid level to 1",
        "void cutlass::Kernel2<gemm_tn_128x128>(Params)",
        "void at::native::radixSortKVInPlace<-2, -1, 128>(unsigned int)",
        "void sort::radix_key::Pass<sort::key::Desc>::run()",
        "bool operator_key==(Token const&)",
        "step[decode bs=4 num_tokens=128]",
        "aten::sort, seq = 12, op_id = 345",
    ],
)
def test_plain_messages_stay(text: str) -> None:
    assert redact(text) == text


def test_what_surrounds_a_secret_stays() -> None:
    assert redact("RANK=0 HF_TOKEN=abc WORLD_SIZE=2") == f"RANK=0 HF_TOKEN={HIDDEN} WORLD_SIZE=2"


@pytest.mark.parametrize(("text", "_"), SECRETS)
def test_a_second_pass_changes_nothing(text: str, _: str) -> None:
    assert redact(redact(text)) == redact(text)


def test_long_names_take_no_time() -> None:
    start = time.perf_counter()
    redact("a" * 200_000 + "key" * 10_000)
    redact("a.b-" * 50_000)
    assert time.perf_counter() - start < 5


# -- what a manifest may hold -----------------------------------------------------------------------


def test_only_what_changes_an_engine_is_recorded_and_no_credential_of_it() -> None:
    given = {
        "NCCL_ALGO": "Ring",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "VLLM_ATTENTION_BACKEND": "FLASHINFER",
        "VLLM_API_KEY": "anything",
        "NCCL_NET": "https://me:pa55@proxy.example",
        "TORCH_LOGS": "hf_AbCdEf123456",
        "HF_TOKEN": "hf_AbCdEf123456",
        "HOME": "/home/me",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    kept, withheld = recorded_environment(given)
    assert kept == {
        "NCCL_ALGO": "Ring",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "VLLM_ATTENTION_BACKEND": "FLASHINFER",
    }
    assert withheld == ["NCCL_NET", "TORCH_LOGS", "VLLM_API_KEY"]


def test_counts_of_tokens_are_no_credentials() -> None:
    assert recorded_environment({"VLLM_MAX_NUM_BATCHED_TOKENS": "8192"})[0]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["vllm", "serve", "--api-key", "abc", "m"], ["vllm", "serve", "--api-key", HIDDEN, "m"]),
        (["vllm", "serve", "--api-key=abc"], ["vllm", "serve", f"--api-key={HIDDEN}"]),
        (["env", "HF_TOKEN=hf_abcdef123", "python"], ["env", f"HF_TOKEN={HIDDEN}", "python"]),
        (
            ["run", "--max-num-tokens", "128", "--seed", "3"],
            ["run", "--max-num-tokens", "128", "--seed", "3"],
        ),
        (["run", "sk-abcdef123456"], ["run", HIDDEN]),
        (["run", "--token", "--other"], ["run", "--token", "--other"]),
        ([], []),
    ],
)
def test_a_command_line_is_shown_without_its_credentials(given: list[str], shown: list[str]) -> None:
    assert shown_command(given) == shown
