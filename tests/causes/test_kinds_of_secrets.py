"""Every word that marks a secret, in every form that logs use, and 200 lines without a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from goodput_cli.vocabulary.secrets import without_secrets
from tests.causes.test_secrets import ORDINARY

VALUE, HEX = "q7Zk2mVx9RtB4nLc8WsY6dHf", "0f9a3c71d2e84b56a7c80d1e2f3a4b5c"
WORDS = (
    "password", "PASSWD", "passphrase", "passcode", "PGPASSWORD", "dbpassword", "DB_PASS", "MYSQL_PWD", "SSHPASS",
    "pass", "REDISCLI_AUTH", "secret", "clientsecret", "token", "hftoken", "authtoken", "access_token", "api_key",
    "wandbapikey", "private-key", "AWS_SECRET_ACCESS_KEY", "X-Api-Key", "credentials", "signature",
)  # fmt: skip
FORMS = (
    "{}={}", "{}: {}", "{} = '{}'", '{}="{}"', '{{"{}": "{}", "port": 1}}', '{{\\"{}\\": \\"{}\\"}}', "'{}': '{}',",
    "https://host/x?a=1&{}={}&b=2", "GET /cb?next=%2Fx%3F{}%3D{}%26b%3D2", "%7B%22{}%22%3A%22{}%22%7D",
    "export {}={}; train.py", "train.py --{} {} --lr 1", "train.py --{}={}", "['train.py', '--{}', '{}']",
    "Config({}=SecretStr('{}'))", "os.environ['{}'] = '{}'", '{{"name": "{}", "value": "{}"}}',
)  # fmt: skip
SPOKEN = ("password", "passphrase", "passcode", "secret", "token", "API key", "access key", "secret access key",
          "private key", "license key", "encryption key", "auth key")  # fmt: skip
WAYS = ("bad {} {}", "the {} is {}", "the {} was '{}'", "{} for alice: {}", "invalid {} ({})", "token {} {} refused")
COMMANDS = (
    f"wandb login {HEX}{HEX[:8]}", f"wandb login --relogin {VALUE}",
    f'{{"auths": {{"nvcr.io": {{"auth": "{VALUE}=="}}}}}}',
    f"mysql -u root -p{VALUE} -h db", f"mysqldump --host db -p'{VALUE}' x", f"sshpass -p {VALUE} ssh node-1",
    f"sshpass -p{VALUE} rsync a b", f"docker login -u bob -p {VALUE} nvcr.io", f"podman login -p {VALUE} quay.io",
    f"az login --service-principal -u app -p {VALUE}", f"redis-cli -h db -a {VALUE} ping",
    f"mongodump -u me -p {VALUE}",
    f"ldapsearch -x -w {VALUE} -b dc=x", f"echo {VALUE} | docker login --password-stdin -u bob",
    f"echo '{VALUE}' | sudo -S apt install x", f"openssl enc -passin pass:{VALUE} -in x", f"vault login {VALUE}",
    f"huggingface-cli login --token {VALUE}", f"machine api.wandb.ai login user password {VALUE}",
    f"aws configure set aws_secret_access_key {VALUE}", f"PRIVATE-TOKEN: {VALUE}", f"//registry/:_authToken={VALUE}",
    f"X-Auth-Token: {VALUE}", f"Proxy-Authorization: Basic {VALUE}",
    f"api_key=SecretStr('{VALUE}')", f"SecretStr('{VALUE}')",
)  # fmt: skip
PREFIXES = (
    "glsa_", "glc_", "glcbt-", "glptt-", "glft-", "gloas-", "xoxc-", "xoxd-", "xoxe.", "xapp-", "hf_", "ghp_", "gho_",
    "sk-", "sk-ant-api03-", "gsk_", "r8_", "nvapi-", "pypi-", "dckr_pat_", "dop_v1_", "lsv2_pt_", "pplx-", "xai-",
    "tgp_v1_", "shpat_", "whsec_", "lin_api_", "pul-", "tskey-auth-", "hvs.", "hvb.", "rk_live_", "ATATT3",
)  # fmt: skip
ORDINARY_TOO = """\
forward_pass=12.5ms backward_pass=31.0ms
forward pass: completed in 0.31s
pass: 12/12 checks
first pass: 3 of 4 shards
PASS: test_allreduce_fp32
bypass: true bypass_cache=on2
second pass starts at step 4000
auth: kubernetes
auth=oauth2 auth_method: workload-identity-2
auth: gcp/service-account-7
using auth provider gcloud
token 4096 of 131072
tokens: 4096, tokens/s: 123456.7
token budget 2000000 reached
token ids out of range: 128256 >= 128000
secret mounted at /var/run/secrets/kubernetes.io/serviceaccount
password authentication is disabled
password: none
the password is required
key is missing
key: value
the key is model.layers.7.weight
license key is not needed
access key is rotated every 90 days
API key is missing; run `wandb login`
wandb login to continue
wandb: Currently logged in as: alice (team-7). Use `wandb login --relogin` to force relogin
docker run -p 8080:80 -p 6006:6006 train:2026.03
docker login succeeded
mysql is not running on port 3306
ssh -p 2222 node-7 hostname
mkdir -p /ckpt/step_1000
cp -a /data/shard-7 /tmp
redis-cli ping
echo step 400 | tee -a log
tar -xzf data.tar.gz -C /data
srun -p gpu -N 4 -n 32 --gpus-per-node 8 python train.py
sbatch -p h100 --account team7 train.sbatch
torchrun --nproc-per-node 8 --rdzv-id 77 train.py
python -m torch.distributed.run --nnodes 4 --master-port 29500 train.py
glob found 512 shards in 0.31 s
glibc 2.35 is older than 2.38
gloo: connection closed by peer 10.0.0.7
glm-4-9b-chat loaded from /models
xoxo
sk-learn and scikit-learn 1.5 differ
pull request 1234 merged
pul-back to step 400
age 42 s, stage-7 done
asian languages: 12 % of tokens
loss 2.3411 grad_norm 0.71 lr 3.0e-05
step 400 | loss 2.01 | 12.3 s/it
epoch 3/10 step 400/1000 eta 02:03:04
saving checkpoint to /ckpt/step_00001000
saved checkpoint step_00001000 in 12.4 s
loading checkpoint shards: 100%
resuming from step 1000
validation loss 1.98 perplexity 7.24
evaluating 1024 samples
world_size=512 rank=7 local_rank=3
device: cuda:3 NVIDIA H100 80GB HBM3
memory allocated: 71.2 GiB, reserved 74.9 GiB
CUDA out of memory. Tried to allocate 2.50 GiB
NCCL WARN Timeout waiting for connection from 10.0.3.7<43210>
node-07 is not responding
signal 15 (SIGTERM) received
exit code 137
OOMKilled
Evicted: The node was low on resource: memory
Preempted by job 8812345
slurmstepd: error: *** JOB 77 ON node-07 CANCELLED AT 2026-03-01T10:00:00 DUE TO TIME LIMIT ***
job 77 requeued
Traceback (most recent call last):
RuntimeError: NCCL communicator was aborted on rank 7
ValueError: too many values to unpack (expected 2)
TypeError: forward() got an unexpected keyword argument 'labels'
AttributeError: 'NoneType' object has no attribute 'shape'
FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'
ModuleNotFoundError: No module named 'flash_attn'
torch.cuda.OutOfMemoryError: CUDA out of memory
ConnectionResetError: [Errno 104] Connection reset by peer
BrokenPipeError: [Errno 32] Broken pipe
TimeoutError: timed out after 1800 s
XlaRuntimeError: DEADLINE_EXCEEDED: barrier timed out
jaxlib.xla_extension.XlaRuntimeError: INTERNAL: slice 2 is unhealthy
ray.exceptions.RayActorError: The actor died unexpectedly
orbax: finished async save in 12.4 seconds
dataset: 12345678 samples, 512 shards, seed 1234
tokenizer has 128256 entries, pad_token_id=128001
optimizer: AdamW betas=(0.9, 0.95) eps=1e-08 weight_decay=0.1
scheduler: cosine warmup_steps=2000 min_lr=3e-06
model: 70.6B parameters, 80 layers, 64 heads, 8 key_value heads
attention: flash_attention_2, rope_theta=500000.0
tensor_parallel=8 pipeline_parallel=4 data_parallel=16
micro_batch_size=1 global_batch_size=1024 seq_length=8192
gradient_accumulation_steps=16
mfu 41.2 % tflops 408.1
throughput 3912.4 tokens/s/gpu
time per step: 12.41 s (forward 3.1, backward 7.9, optimizer 1.4)
data loading took 0.012 s
all-reduce 0.81 s, reduce-scatter 0.40 s
compile cache hit: 2f1e0d9c8b7a
git commit 42ab89d9f0c1e2d3b4a5968778695a4b3c2d1e0f
image digest sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
run id 3f2a9c1e-7b64-4d0e-9a51-0c1d2e3f4a5b
hostname: gke-pool-7f3a9c1e-x2k4
pod llm-7b-worker-0 in namespace team-red
uid 0f9a3c71-d2e8-4b56-a7c8-0d1e2f3a4b5c
trace_id=0f9a3c71d2e84b56a7c80d1e2f3a4b5c span_id=a7c80d1e2f3a4b5c
PCI 00000000:c1:00.0 Xid 79: GPU has fallen off the bus
mlx5_0: port 1 link down
nvidia-smi: driver 550.54.15, CUDA 12.4
temperature 71 C power 688 W
fan 42 %
disk /dev/nvme0n1 is 91 % full
2026-03-01T10:00:00.123Z INFO train started
[rank7]: step 400 took 12.3 s
W0301 10:00:00.123456 1234 torch/distributed/run.py:779]
I0301 10:00:00.123456 140234 pjrt_client.cc:42] device 7 ready
*****************************************
Setting OMP_NUM_THREADS environment variable for each process to be 1 in default
wandb: Run data is saved locally in /work/wandb/run-20260301_100000-3k2f9x1a
wandb: View run at https://wandb.ai/team/proj/runs/3k2f9x1a
tensorboard --logdir /runs --port 6006
mlflow run 0f9a3c71d2e84b56a7c80d1e2f3a4b5c finished
user: alice, account: team7, partition: h100
ulimit -n 1048576
LD_LIBRARY_PATH=/usr/local/cuda/lib64
PYTHONPATH=/work:/opt/lib HOME=/root
NCCL_DEBUG=INFO NCCL_IB_HCA=mlx5
MASTER_ADDR=10.0.0.1 MASTER_PORT=29500
HF_HOME=/cache/hf TRANSFORMERS_CACHE=/cache/tf
CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7
signature mismatch: expected 3 arguments
bad signature of step_fn(state, batch)
the secret of speed is overlap
tokenization finished in 31.4 s
detokenizer is 12 % slower
keyboard interrupt
keys: ['input_ids', 'labels', 'attention_mask']
missing keys in checkpoint: lm_head.weight
unexpected keys: ['optimizer.state.7.exp_avg']
KeyError: 'loss_scale'
the state of rank 7 is unknown
shard 12 of 512 is read again
a barrier of 512 hosts was reached in 0.8 s
""".splitlines()


def is_hidden(text: str, value: str) -> bool:
    shown = without_secrets(text)
    return value not in shown and "***" in shown


@pytest.mark.parametrize("form", FORMS)
def test_secret_word_hides_its_value(form: str) -> None:
    assert [word for word in WORDS if not is_hidden(form.format(word, VALUE), VALUE)] == []


@pytest.mark.parametrize("way", WAYS)
def test_secret_in_a_sentence_is_hidden(way: str) -> None:
    assert [word for word in SPOKEN if not is_hidden(way.format(word, VALUE), VALUE)] == []


@pytest.mark.parametrize("line", COMMANDS)
def test_secret_in_a_command_is_hidden(line: str) -> None:
    assert is_hidden(line, HEX if HEX in line else VALUE), without_secrets(line)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_token_prefix_hides_the_token(prefix: str) -> None:
    assert is_hidden(f"rejected {prefix}{VALUE} by host", VALUE)


@pytest.mark.parametrize(
    "name", ["password", "PGPASSWORD", "dbpassword", "DB_PASS", "SSHPASS", "passcode", "MYSQL_PWD"]
)
def test_short_password_is_hidden(name: str) -> None:
    assert is_hidden(f"{name}=hunter", "hunter")
    assert is_hidden(f'{{"{name}": "a b"}}', "a b")


def test_table_of_secrets_is_large_enough() -> None:
    assert len(WORDS) * len(FORMS) + len(SPOKEN) * len(WAYS) + len(COMMANDS) + len(PREFIXES) >= 77
    assert len({*ORDINARY, *ORDINARY_TOO}) >= 200


def test_ordinary_lines_are_unchanged() -> None:
    assert [line for line in (*ORDINARY, *ORDINARY_TOO) if without_secrets(line) != line] == []


def test_time_is_linear_in_the_text() -> None:
    """For a line of one repeated word, each position is examined a bounded number of times."""
    for word in ("token ", "mysql -", "echo ", "password for a", "%3D", "wandb login --a "):
        without_secrets(word * 20_000)


def test_sample_logs_are_unchanged() -> None:
    root = Path(__file__).parent.parent.parent / "sample_logs" / "trainers"
    for path in (root / "own-loop.log", root / "nemo-ft_launcher.log"):
        assert [line for line in path.read_text().splitlines() if without_secrets(line) != line] == []
