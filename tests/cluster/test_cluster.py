"""`goodput fleet` with real worker processes: every way of computing gives the same answer and leaves no process
behind.

`make test-fleet` runs these: each starts several processes, which takes seconds.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import Client, LocalCluster

from goodput_cli.cli.main import run
from goodput_cli.errors import GoodputError, UsageError
from goodput_cli.fleet.passes import clusters
from goodput_cli.fleet.passes.clusters import open_dask
from goodput_cli.fleet.question import Workers
from tests.support.commands import until
from tests.support.fleets import (
    PATIENCE,
    answers,
    environment,
    free_port,
    make_fleet,
    read,
    remains_of_session,
    resident,
    workers_of,
)
from tests.support.fleets import start_fleet as start

JOBS = 200
pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages, in other processes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cluster")
    make_fleet(folder / "logs", JOBS)
    (folder / "labels.csv").write_text("job,team,accelerators\njob-00*,search,8\njob-*,vision,512\n")
    return folder


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, bytes]:
    """Return the answer of a single process, by format."""
    return answers(folder, "one", "--workers", "1")


@pytest.mark.parametrize("workers", ["2", "3"])
def test_any_number_of_workers_gives_the_same_bytes(folder: Path, expected: dict[str, bytes], workers: str) -> None:
    process = start(folder, "several", "--workers", workers)
    most = 0
    while process.poll() is None:
        most = max([most, *map(resident, workers_of(process, 0))])
        time.sleep(0.1)
    assert (process.returncode, process.communicate()[1]) == (0, b"")
    assert read(folder, "several") == expected
    assert 0 < most < 200e6
    assert list((folder / "temporary").iterdir()) == []


def test_log_too_large_for_a_worker_is_read_by_the_driver(folder: Path) -> None:
    large = folder / "large"
    shutil.copytree(folder / "logs" / "part-0", large)
    line = '{"job_name": "large", "step_count": %d, "step_start_time": %d}\n'
    steps = "".join(line % (step, 1_770_000_000 + step) for step in range(250_000))
    (large / "large.jsonl").write_text('{"job_name": "large", "job_start_time": 1770000000}\n' + steps)
    told = [sys.executable, "-m", "goodput_cli", "fleet", "large", "--format", "json", "--no-progress"]
    runs = [
        subprocess.run([*told, *more], cwd=folder, env=environment(folder), capture_output=True, check=True)
        for more in (["--workers", "1"], ["--workers", "2", "--memory", "170MB"])
    ]
    assert runs[0].stdout == runs[1].stdout
    assert b"large.jsonl: needs about 0.2 GB, more than --memory; analyzed in the main process" in runs[1].stderr
    assert b"in the main process" not in runs[0].stderr


@pytest.fixture
def scheduler(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start an external scheduler with two workers without nannies, in another directory than the command's."""
    (folder / "elsewhere").mkdir(exist_ok=True)
    address = f"tcp://127.0.0.1:{free_port()}"
    dask = [sys.executable, "-m", "distributed.cli"]
    common = {"cwd": folder, "env": environment(folder), "stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    name, _, port = address.removeprefix("tcp://").partition(":")
    head = subprocess.Popen(
        [*dask[:2], "distributed.cli.dask_scheduler", "--host", name, "--port", port, "--no-dashboard"], **common
    )  # type: ignore[call-overload]
    workers = [
        subprocess.Popen(
            [*dask[:2], "distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard"],
            **{**common, "cwd": folder / "elsewhere"},
        )  # type: ignore[call-overload]
        for _ in range(2)
    ]
    with Client(address, timeout=PATIENCE) as client:
        client.wait_for_workers(2, timeout=PATIENCE)
    yield address, head
    for process in (*workers, head):
        process.terminate()
        process.wait(PATIENCE)
    for path in (folder / "temporary").iterdir():
        subprocess.run(["rm", "-rf", str(path)], check=True)


def test_external_cluster_agrees_and_its_loss_is_reported(
    folder: Path, expected: dict[str, bytes], scheduler: tuple[str, subprocess.Popen[bytes]]
) -> None:
    address, head = scheduler
    cluster = ("--scheduler", address, "--insecure-scheduler")
    assert answers(folder, "cluster", *cluster, "--store", "shared") == expected
    lost = start(folder, "lost", *cluster, "--store", "shared-2")
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and not list((folder / "shared-2").glob("results/*")):
        time.sleep(0.05)
    head.kill()
    _, said = lost.communicate(timeout=PATIENCE)
    assert lost.returncode in (0, 1)
    if lost.returncode == 1:
        assert b"run again with --store to continue" in said
        assert b"Traceback" not in said
    assert answers(folder, "again", "--workers", "1", "--store", "shared-2") == expected


@pytest.mark.parametrize(
    ("named", "code", "words"),
    [
        ("tls://127.0.0.1:1", 1, "requires certificates\ntip: set them in dask's configuration"),
        ("tcp://127.0.0.1:1", 2, "--insecure-scheduler"),
        ("broken.json", 2, "not a scheduler file written by dask"),
        ("open.json", 2, "--insecure-scheduler"),
        ("nowhere.json", 2, "not a file and not an address (tls://HOST:PORT)"),
    ],
)
def test_unusable_scheduler_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], named: str, code: int, words: str
) -> None:
    monkeypatch.chdir(folder)
    Path("broken.json").write_text("{}")
    Path("open.json").write_text('{"address": "tcp://127.0.0.1:1"}')
    assert run(["fleet", "logs/part-0", "--scheduler", named, "--store", "unused"]) == code
    assert words in capsys.readouterr().err


def test_missing_workers_and_invisible_logs_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "_PATIENCE_SECONDS", 0.5)
    kind = {"processes": False, "protocol": "tcp://", "host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(n_workers=0, **kind) as cluster:
        workers = Workers(scheduler=cluster.scheduler_address, insecure_scheduler=True)
        with (
            pytest.raises(UsageError, match="no worker connected to the scheduler within"),
            open_dask(1, workers, tmp_path),
        ):
            pass
        cluster.scale(1)
        monkeypatch.setattr(clusters, "_PATIENCE_SECONDS", PATIENCE)
        with pytest.raises(UsageError, match="cannot read /nowhere"), open_dask(1, workers, tmp_path, "/nowhere"):
            pass
        with open_dask(1, workers, tmp_path, str(tmp_path)) as engine:
            assert engine.workers == 1


def test_local_workers_reject_a_peer_without_certificate(tmp_path: Path) -> None:
    with open_dask(1, Workers(), tmp_path) as engine:
        assert engine.address.startswith("tls://127.0.0.1:")
        with pytest.raises((OSError, ValueError, TypeError)):
            Client(engine.address, timeout=3)
        with pytest.raises((OSError, ValueError)):
            Client(engine.address.replace("tls://", "tcp://"), timeout=3)


@pytest.mark.parametrize("moment", [0.0, 0.2, 0.5, 1.0, 1.5])
def test_killed_worker_loses_nothing(folder: Path, expected: dict[str, bytes], moment: float) -> None:
    process = start(folder, "killed", "--workers", "2")
    found = workers_of(process, 2, working=True)
    time.sleep(moment)
    victim = random.Random(moment).choice(found)
    if victim.is_running():
        victim.kill()
    _, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (0, b"")
    assert read(folder, "killed") == expected


KILLER = """
import os

class Killer:
    name = "killer"
    keys = frozenset({"job_name", "kill"})

    def recognises(self, record):
        if "kill" in record:
            os._exit(9)
        return False

    def translate(self, records, output):
        return ~records.every()
"""


def test_log_that_kills_its_worker_is_listed_and_others_are_read(folder: Path, expected: dict[str, bytes]) -> None:
    """It is in the middle: a task has 13 documents here, and the others of its task are tried again."""
    killer = folder / "logs" / "job-0100-killer.jsonl"
    about = folder / "plugins" / "killer-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: killer\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[goodput_cli.formats]\nkiller = killer_format:Killer\n")
    (folder / "plugins" / "killer_format.py").write_text(KILLER)
    killer.write_text('{"job_name": "x", "kill": 1}\n')
    try:
        found = answers(folder, "killer", "--workers", "2", silent=False)
    finally:
        killer.unlink()
        subprocess.run(["rm", "-rf", str(folder / "plugins")], check=True)
    assert b'job-0100-killer.jsonl","reason":"killed its worker (out of memory?)"' in found["json"]
    assert found["csv"] == expected["csv"]


def test_killed_driver_leaves_a_usable_store(folder: Path, expected: dict[str, bytes]) -> None:
    process = start(folder, "driver", "--workers", "1", "--store", "cut")
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and not list((folder / "cut").glob("results/*")):
        time.sleep(0.02)
    process.kill()
    process.communicate()
    both = [start(folder, f"both-{number}", "--workers", "1", "--store", "cut") for number in range(2)]
    for number, one in enumerate(both):
        _, said = one.communicate(timeout=PATIENCE)
        assert (one.returncode, said) == (0, b"")
        assert read(folder, f"both-{number}") == expected


@pytest.mark.parametrize("moment", [None, 0.0, 0.4, 0.8])
def test_ctrl_c_ends_all_processes(folder: Path, moment: float | None) -> None:
    """The test interrupts at several moments of the work, and before any worker is up."""
    (folder / "temporary").mkdir(exist_ok=True)
    process = start(folder, "interrupted", "--workers", "2")
    assert workers_of(process, 1) if moment is None else workers_of(process, 2, working=True)
    time.sleep(moment or 0)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    if process.returncode != 0:  # It can be finished by then.
        assert (process.returncode, said.strip()) == (130, b"Interrupted.")
    assert moment is not None or process.returncode == 130
    deadline = time.monotonic() + 5
    while (left := remains_of_session(folder, process.pid)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


def test_slow_worker_start_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine its start takes longer than the limit for a lost worker, but its process exists from the
    start."""
    monkeypatch.setattr(clusters, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(clusters, "_PATIENCE_SECONDS", 0.4)  # less than a dask process needs
    monkeypatch.setattr(clusters, "_STARTS_LONGER", 1000)
    with open_dask(1, Workers(), tmp_path) as engine:
        until(lambda: any(one.is_alive() for one in list(engine.client.cluster.workers.values())))
        engine._last_process = engine._last_worker = time.monotonic()
        assert list(engine.run(sum, iter([[1, 2]]))) == [([1, 2], 3)]


def test_lost_workers_are_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "_LOOK_SECONDS", 0.1)
    monkeypatch.setattr(clusters, "_PATIENCE_SECONDS", 0.5)
    with open_dask(1, Workers(), tmp_path) as engine:
        engine.client.cluster.scale(0)
        with pytest.raises(GoodputError, match="all worker processes have died"):
            list(engine.run(sum, iter([[1, 2]])))
