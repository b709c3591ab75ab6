"""No output quotes a secret, and ordinary lines are quoted unchanged (docs/causes.md)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from goodput_cli.cli.main import run

ALNUM, HEX, PHRASE = "q7Zk2mVx9RtB4nLc8WsY6dHf", "0f9a3c71d2e84b56a7c80d1e2f3a4b5c", "correct horse battery"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MiJ9.c2lnbmVkLWJ5LW1l"
SECRETS: dict[str, tuple[str, ...]] = {  # Each row has the log line and the text that must stay hidden.
    "AWS_SECRET_ACCESS_KEY": (f"AWS_SECRET_ACCESS_KEY={ALNUM}/a+b", ALNUM, "a+b"),
    "AWS_SESSION_TOKEN": (f"AWS_SESSION_TOKEN={ALNUM}==", ALNUM),
    "aws_access_key_id": (f"aws_access_key_id = AKIA{ALNUM.upper()}", ALNUM.upper()),
    "SECRET_KEY": (f"SECRET_KEY={ALNUM}", ALNUM),
    "a secret of Azure": (f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={ALNUM}+/==;End=core", ALNUM),
    "SharedAccessKey": (f"Endpoint=sb://x/;SharedAccessKey={ALNUM}=", ALNUM),
    "private_key": (f"private_key: {ALNUM}", ALNUM),
    "passphrase": (f"passphrase={ALNUM}", ALNUM),
    "pwd": ("Server=db;UID=sa;PWD=hunter2!;", "hunter2"),
    "password": ("password=hunter2", "hunter2"),
    "passwd": ("passwd: hunter2", "hunter2"),
    "a password of several words": (f'password="{PHRASE}" host=db', "correct", "horse", "battery"),
    "a password in JSON": (f'{{"db": {{"Password": "{PHRASE}", "port": 1}}}}', "horse", "battery"),
    "a password in JSON in JSON": (f'{{\\"password\\": \\"{PHRASE}\\"}}', "horse", "battery"),
    "a dictionary of Python": (f"{{'hf_token': '{ALNUM}', 'rank': 0}}", ALNUM),
    "an item of Python": (f"os.environ['HF_TOKEN'] = '{ALNUM}'", ALNUM),
    "bytes of Python": (f"secret=b'{ALNUM}'", ALNUM),
    "clientSecret": (f"clientSecret={ALNUM}", ALNUM),
    "client-secret": (f"client-secret: {ALNUM}", ALNUM),
    "credential": (f"X-Amz-Credential={ALNUM}/20260301", ALNUM),
    "WANDB_API_KEY": (f"WANDB_API_KEY={HEX}{HEX[:8]}", HEX),
    "APIKey": (f"APIKey: {HEX}", HEX),
    "behind a word with a sign": (f"env: HF_TOKEN={ALNUM}", ALNUM),
    "an environment of a pod": (f'{{"name": "DB_PASSWORD", "value": "{ALNUM}"}}', ALNUM),
    "a property": (f"fs.s3a.secret.key={ALNUM}", ALNUM),
    "behind a line break that is written": (f"environment:\\nsecret_key={ALNUM}\\nx=1", ALNUM),
    "W&B's wording": (f"invalid API key {HEX}{HEX[:8]}", HEX),
    "in words": (f"the secret is {ALNUM}", ALNUM),
    "ASIA": (f"for ASIA{ALNUM.upper()}", ALNUM.upper()),
    "AKIA": (f"for AKIA{ALNUM.upper()}", ALNUM.upper()),
    "JWT": (f"rejected {JWT}", *JWT.split(".")),
    "AIza": (f"for AIza{ALNUM}_-{ALNUM[:9]}", ALNUM),
    "ya29": (f"for ya29.{ALNUM}-x_y", ALNUM, "x_y"),
    "glpat": (f"for glpat-{ALNUM}", ALNUM),
    "ghr": (f"for ghr_{ALNUM}", ALNUM),
    "ghp": (f"for ghp_{ALNUM}", ALNUM),
    "github_pat": (f"for github_pat_{ALNUM}_{ALNUM}", ALNUM),
    "npm": (f"for npm_{ALNUM}", ALNUM),
    "dapi": (f"for dapi{HEX}", HEX),
    "hf": (f"for hf_{ALNUM}", ALNUM),
    "sk": (f"for sk-proj-{ALNUM}", ALNUM),
    "slack": (f"for xoxb-123456789012-{ALNUM}", ALNUM),
    "nvapi": (f"for nvapi-{ALNUM}", ALNUM),
    "X-Amz-Signature": (f"GET https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature={HEX}{HEX}", HEX),
    "X-Goog-Signature": (f"GET https://storage.googleapis.com/b/k?X-Goog-Signature={HEX}{HEX}", HEX),
    "sig of Azure": (f"PUT https://a.blob.core.windows.net/c?sv=2024-01-01&sig={ALNUM}%2Bx%3D&se=1", ALNUM),
    "hooks.slack.com": (f"POST https://hooks.slack.com/services/T0{ALNUM[:8]}/B0/{ALNUM}", ALNUM, ALNUM[:8]),
    "PEM": (f"bad -----BEGIN RSA PRIVATE KEY-----\\nMII{ALNUM}\\n{HEX}\\n-----END RSA PRIVATE KEY-----", ALNUM, HEX),
    "PEM without an end": (f"bad -----BEGIN PRIVATE KEY----- MII{ALNUM} {HEX}", ALNUM, HEX),
    "Cookie": (f"Cookie: session={HEX}; id={ALNUM[:7]}", HEX, ALNUM[:7]),
    "Set-Cookie": (f"Set-Cookie: sid={HEX}; Path=/", HEX),
    "Bearer": (f"Authorization: Bearer {ALNUM}", ALNUM),
    "Bearer in a dictionary": (f"{{'Authorization': 'Bearer {ALNUM}'}}", ALNUM),
    "Basic": ("authorization: Basic dXNlcjpodW50ZXIy", "dXNlcjpodW50ZXIy"),
    "Authorization of a kind of its own": (f"Authorization: Token {ALNUM}", ALNUM),
    "a token in a URL": (f"https://{ALNUM}@github.com/org/repo.git", ALNUM),
    "a password in a URL": ("postgresql://u:hunter2@db/x", "hunter2"),
    "a password with / in a URL": ("redis://u:hun/ter2@db:6379/0", "hun", "ter2"),
    "a password with @ in a URL": ("amqp://u:hun@ter2@db/x", "hun", "ter2"),
    "a password without a name in a URL": ("redis://:hunter2@db:6379/0", "hunter2"),
    "a long password in a URL": (f"https://u:{ALNUM * 40}@db/x", ALNUM),
    "--hf-token": (f"train.py --hf-token {ALNUM} --lr 1", ALNUM),
    "--password": ("train.py --password hunter2 --lr 1", "hunter2"),
    "--api-key=": (f"train.py --api-key={ALNUM} --lr 1", ALNUM),
    "a list of arguments": (f"Command '['python', 'train.py', '--hf-token', '{ALNUM}']'", ALNUM),
    "curl -u": ("curl -sS -u alice:hunter2 https://host/x", "hunter2"),
}
ORDINARY = """\
num_tokens=4096 max_tokens: 131072 tokens_per_second=123456.78
tokens per train step: 4194304
signal: 9 (Killed)
Missing key(s) in state_dict: "module.layers.0.self_attention.qkv.weight", "lm_head.weight"
Unexpected key(s) in state_dict: "model.embed_tokens.weight".
key_value_heads: 8, num_key_value_heads: 8
KeyError: 'model.layers.10.self_attn.q_proj.weight'
NoSuchKey: The specified key does not exist.
An error occurred (AccessDenied) when calling the GetObject operation: Access Denied
commit 42ab89d9f0c1e2d3b4a5968778695a4b3c2d1e0f
HEAD is now at 42ab89d9 Two links are gone
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
md5 checksum of shard-00012-of-00512.tar is 9e107d9d372bb6826bd81d3542a419d6
docker://nvcr.io/nvidia/pytorch@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
git+https://github.com/NVIDIA/Megatron-LM.git@core_v0.9.0
step 30412/100000 loss 2.3411 lr 3.0e-05 grad_norm 0.71 tokens 1.2e+09
iteration 1203: loss scale 65536.0, time per token: 12.5ms, ms_per_token=0.01234567
Loading meta-llama/Llama-3.1-405B-Instruct from /ckpt/step_100
model=mistralai/Mixtral-8x7B-v0.1 tokenizer=sentencepiece/llama-2-70b
tokenizer_name: meta-llama/Llama-2-7b-hf tokenizer_type=SentencePieceTokenizer
moe_token_dispatcher_type: alltoall_seq token_file=/var/run/secrets/sa/token
The attention mask and the pad token id were not set
Setting pad_token_id to eos_token_id:128001 for open-end generation.
Token indices sequence length is longer than the specified maximum sequence length (9123 > 8192)
CUDA error: an illegal memory access was encountered at 0x7f21c0000000
tcp://10.0.0.3:29500 rank 3 failed to connect to node-03.cluster.local:29500
NCCL error in: /opt/pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1691, unhandled system error
[Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=15, OpType=ALLREDUCE, NumelIn=64)
Socket Timeout: store.get('default_pg/0//cuda//timestamp') timed out after 600000ms
cublasLtMatmul: status CUBLAS_STATUS_NOT_SUPPORTED m=4096 n=8192 k=1024
expected shape torch.Size([4096, 4096]), got key_states: torch.Size([8, 128, 4096])
Traceback: File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1511
[Errno 28] No space left on device: '/dev/shm/cache/block-3'
Disk quota exceeded: '/home/alice/.cache/huggingface/hub/models--meta-llama--Llama-2-7b'
Command '['python', '-u', 'train.py', '--max-tokens', '4096']' returned non-zero exit status 1.
Job 8812345 exceeded memory limit (8191 > 8000), being killed
slurmstepd: error: Detected 3 oom_kill events in StepId=77.0
503 POST https://storage.googleapis.com/upload/storage/v1/b/ckpt/o?uploadType=resumable: Service Unavailable
Could not connect to the endpoint URL: "https://data.s3.eu-west-1.amazonaws.com/shard-7"
HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /api/models/gpt2
gs://bucket/checkpoints/step_00012000/__0_0.distcp is missing
s3://bucket/data@2024-01-01/shard-00001.tar is truncated
abfss://data@account.dfs.core.windows.net/shard-7 is not found
ssh://git@github.com/org/repo.git: connection refused
Access denied for user 'goodput'@'10.0.0.7' (using password: YES)
PWD=/workspace/train HOME=/root USER=root SHELL=/bin/bash
run 3f2a9c1e-7b64-4d0e-9a51-0c1d2e3f4a5b at 2026-03-01T10:10:46.123456Z
GPU-5f1c2d3e-4b5a-6978-8796-a5b4c3d2e1f0 has fallen off the bus
hf_checkpoint_converter failed: hf_hub_download raised
scikit-learn 1.5.0 is incompatible with numpy 2.1.0; sk-learn is deprecated
docker run -u 1000:1000 --gpus all train:2026.03
basic optimizations disabled; bearing temperature of rack 12 is 41 C
Expected all keys to be strings, got int at key 17
signature of forward() does not match: signature: forward(self, x)
[Rank 3] Timeout waiting for key: default_pg/0//cpu//0/0 after 300000 ms
cudaMalloc failed at allocator key 0, pool id (0, 1)
""".splitlines()
STEPS = "".join(f"2026-03-01 10:{minute:02d}:00 step {minute} loss 2.0\n" for minute in range(10))


def traceback_of(text: str) -> str:
    return f'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\nRuntimeError: {text}\n'


def quotes(log: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    run(["check", str(log), "--format", "json"])
    return [one["text"] for one in json.loads(capsys.readouterr().out)["observations"]]


def test_no_kind_of_secret_is_quoted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "train.log"
    log.write_text(STEPS + "".join(traceback_of(f"case {name}; {text}") for name, (text, *_) in SECRETS.items()))
    shown = quotes(log, capsys)
    assert len(shown) == len(SECRETS)
    leaks = {name: text for name, text in zip(SECRETS, shown, strict=True) if any(s in text for s in SECRETS[name][1:])}
    assert leaks == {}
    assert all("***" in text for text in shown)


def test_ordinary_lines_are_quoted_unchanged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(ORDINARY) >= 50
    log = tmp_path / "train.log"
    log.write_text(STEPS + "".join(traceback_of(f"{number} {text}") for number, text in enumerate(ORDINARY)))
    assert quotes(log, capsys) == [f"RuntimeError: {number} {text}" for number, text in enumerate(ORDINARY)]


@pytest.fixture(scope="module")
def died(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a job that dies with a secret in its last line and starts again."""
    log = tmp_path_factory.mktemp("died") / "train.log"
    hostile = Path(__file__).parent / "examples" / "12-hostile-words" / "train.log"
    died, count = re.subn(r"(?<=ValueError: ).*", f"AWS_SECRET_ACCESS_KEY={ALNUM} is wrong", hostile.read_text())
    assert count == 1
    log.write_text(died)
    return log


WAYS = [(command, ending) for command in ("analyze", "disruptions", "timeline", "check")
        for ending in ("txt", "json", "html", "md", "csv", "parquet")]  # fmt: skip


@pytest.mark.parametrize(("command", "ending"), [*WAYS, ("analyze", "xml"), ("analyze", "prom"), ("fleet", "json")])
def test_no_output_shows_the_secret(command: str, ending: str, died: Path, tmp_path: Path) -> None:
    out = tmp_path / f"answer.{ending}"
    assert run([command, str(died), *(() if command == "fleet" else ("--job-name", "job")), "-q", "-o", str(out)]) in (
        0,
        5,
    )
    assert ALNUM.encode() not in out.read_bytes()
    if ending in ("json", "md") and command in ("analyze", "disruptions"):
        assert "SECRET_ACCESS_KEY=***" in out.read_text().replace("\\", "")


@pytest.mark.parametrize(
    "asked",
    [["analyze", "--full"], ["analyze", "--strict"], ["disruptions"], ["timeline"], ["check", "-v"], ["advise"]],
    ids=" ".join,
)
def test_no_terminal_shows_the_secret(asked: list[str], died: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run([asked[0], str(died), "--job-name", "job", *asked[1:]])
    said = "".join(capsys.readouterr())
    assert said
    assert ALNUM not in said


LINES = "".join(
    f"2026-03-01 10:00:{n:02d} auth token=ghp_{ALNUM} password: correcthorse update {n} of 9 took 1.{n}s\n"
    for n in range(1, 9)
)  # fmt: skip
MAPPING = """\
name = "own"
[[rule]]
event = "step"
line = "update {step:int} of 9 took {each:float}s"
[[rule]]
event = "save"
line = "uploaded with {took:word} to"
took = { unit = "s" }
"""


def test_mapping_helpers_hide_the_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, mapping, rejects = tmp_path / "train.log", tmp_path / "own.toml", tmp_path / "rejects.csv"
    refused = f"2026-03-01 10:01:00 uploaded with ghp_{ALNUM} to https://u:hunter2@host\n"
    other = f"2026-03-01 10:01:01 nobody reads secret_key={ALNUM} here\n"
    log.write_text(LINES + refused + other + traceback_of(f"secret_key={ALNUM}"))
    mapping.write_text(MAPPING)
    texts = []
    for asked in (
        ["check", str(log), "--mapping", str(mapping), "--rejects", str(rejects), "-v"],
        ["check", str(log), "--mapping", str(mapping), "--format", "json"],
        *(["check", "--explain", f"{log}:{number}", "--mapping", str(mapping)] for number in (1, 9, 10, 13)),
        ["check", "--suggest", str(log)],
    ):
        run(asked)
        texts.append("".join(capsys.readouterr()))
    texts.append(rejects.read_text())
    assert all(texts)
    assert "***" in "".join(texts)
    for text in texts:
        assert [one for one in (ALNUM, "hunter2", "correcthorse") if one in text] == [], text


def test_inferred_rules_read_lines_with_a_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, draft = tmp_path / "train.log", tmp_path / "draft.toml"
    log.write_text(LINES)
    assert run(["check", "--suggest", str(log), "-o", str(draft)]) == 0
    assert "token=***" in draft.read_text()
    assert run(["analyze", str(log), "--mapping", str(draft), "-q", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["job"]["last_step"] == 9
