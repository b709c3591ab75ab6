"""Requirements of a new machine: dependencies that are declared and pinned, and the commands of the Makefile."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from importlib.metadata import entry_points, packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import goodput_cli
from goodput_cli.__main__ import main
from goodput_cli.cli.main import DISTRIBUTION
from tests.support.patterns import imports_of

ROOT = Path(__file__).parent.parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


CALLED_BY = {"lightning", "pytorch_lightning", "transformers"}
"""Frameworks whose callbacks the recorder has. A program without them never imports those callbacks."""


def pins(python: str) -> dict[str, str]:
    """Return the pinned version of each package for a Python such as 3.11, by name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"==[^*,]+", str(pin.specifier)) for pin in pinned), "constraints.txt holds exact versions"
    here = [pin for pin in pinned if is_required(pin, python)]
    found: dict[str, str] = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in here}
    assert len(found) == len(here), "one version of each package"
    return found


def is_required(requirement: Requirement, python: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"python_version": python})


def pythons() -> list[str]:
    """Return the Python versions that the project supports."""
    named = [
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text) for text in PROJECT["project"]["classifiers"]
    ]
    return [match[1] for match in named if match]


def requirements() -> list[Requirement]:
    project = PROJECT["project"]
    listed = [*PROJECT["build-system"]["requires"], *project["dependencies"]]
    listed += [text for extra in project["optional-dependencies"].values() for text in extra]
    return [Requirement(text) for text in listed if not text.startswith(DISTRIBUTION)]


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_every_dependency_is_pinned_within_its_range(requirement: Requirement) -> None:
    for python in pythons():
        if is_required(requirement, python):
            version = pins(python)[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version)


OPTIONAL = ("fleet", "s3", "zst", "reconcile")
"""Extras whose modules the package imports on demand."""


def test_imported_packages_are_installed_by_default() -> None:
    """Only the extras that the README names are exempt."""
    extras = PROJECT["project"]["optional-dependencies"]
    listed = [
        *PROJECT["project"]["dependencies"],
        *(text for name in OPTIONAL for text in extras[name]),
    ]
    declared = {canonicalize_name(Requirement(text).name) for text in listed}
    installed = packages_distributions()
    ours_and_pythons = {*sys.stdlib_module_names, "goodput_cli"}
    for name in sorted(imported_modules(ROOT / "goodput_cli") - ours_and_pythons - CALLED_BY):
        providers = {canonicalize_name(provider) for provider in installed.get(name, [name])}
        assert providers & declared, f"{name} is imported and not declared"


def imported_modules(folder: Path) -> set[str]:
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in imports_of(path):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found


def test_every_data_file_is_part_of_the_package() -> None:
    """A missing table of words breaks the installed package, but not a checkout."""
    package = ROOT / "goodput_cli"
    declared = {
        path
        for pattern in PROJECT["tool"]["setuptools"]["package-data"]["goodput_cli"]
        for path in package.glob(pattern)
    }
    read = {path for ending in ("toml", "html", "css", "js") for path in package.rglob(f"*.{ending}")}
    assert len(read) > 20
    assert read - declared == set()


def test_command_and_version_are_installed() -> None:
    (command,) = entry_points(group="console_scripts", name="goodput")
    assert command.load() is main
    assert PROJECT["project"]["version"] == goodput_cli.__version__
    assert (ROOT / "goodput_cli" / "py.typed").exists()


def test_oldest_python_is_the_same_everywhere() -> None:
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert PROJECT["tool"]["mypy"]["python_version"] == oldest
    assert pythons()[0] == oldest, "classifiers name what is tested: the oldest Python, and the newest that CI has"
    assert PROJECT["tool"]["ruff"]["target-version"] == "py" + oldest.replace(".", "")
    assert str(tuple(int(part) for part in oldest.split("."))) in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_continuous_integration_runs_the_tests() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    text = script.read_text(encoding="utf-8")
    for target in ("make test ", "make test-browser ", "make test-prometheus "):
        assert target in text


@pytest.mark.parametrize(
    ("present", "chosen"),
    [
        ({"python3.9": "", "python3": ""}, []),  # too old, or without venv: no output
        ({"python3": "3.11", "python3.11": "3.11"}, ["python3"]),
        (
            {"python3": "3.12", "python3.9": "", "python3.11": "3.11", "python3.14": "3.14"},
            ["python3.11", "python3.14"],
        ),
    ],
)
def test_continuous_integration_uses_oldest_and_newest_python(
    present: dict[str, str], chosen: list[str], tmp_path: Path
) -> None:
    link(tmp_path, "bash env grep sort awk")
    for name, version in present.items():
        fake = tmp_path / name
        fake.write_text(
            f"#!{shutil.which('sh')}\necho {version} {fake}\n" if version else f"#!{shutil.which('false')}\n"
        )
        fake.chmod(0o755)
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run([ROOT / ".ci" / "interpreters"], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(tmp_path / name) for name in chosen]


def link(folder: Path, tools: str) -> None:
    """Link programs of this machine into a directory that contains no others."""
    for tool in tools.split():
        (folder / tool).symlink_to(shutil.which(tool) or pytest.skip(f"needs {tool}"))


MAKE = """#!/usr/bin/env bash
pwd; env; ls -A . "$HOME" "$TMPDIR"
touch "$HOME/left" made
mkdir -m 500 "$TMPDIR/locked"
exit 5
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("checkout", [True, False])
def test_continuous_integration_runs_on_a_clean_checkout(checkout: bool, tmp_path: Path) -> None:
    """It sees only committed files, an empty home and few variables. It exits with the status of the failure and
    leaves no files."""
    home, own, tools, tree = (tmp_path / name for name in ("home", "home/bin", "tools", "tree"))
    for folder in (own, tools, tree / ".ci", home / ".config" / "pip"):
        folder.mkdir(parents=True)
    for name in ("run", "interpreters"):
        shutil.copy(ROOT / ".ci" / name, tree / ".ci" / name)
    for tool, text in {"make": MAKE, "python3.11": f"#!/bin/sh\necho 3.11 {tools}/python3.11\n"}.items():
        (tools / tool).write_text(text)
        (tools / tool).chmod(0o755)
    (home / ".config" / "pip" / "pip.conf").write_text("[global]\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example", "-C", str(tree)]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "First"]) if checkout else ():
        subprocess.run([*git, *command], check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})
    (tree / "not-committed").touch()
    (tree / ".venv").mkdir()
    link(tools, "bash env grep sort awk tr paste mktemp mkdir chmod rm tar dirname ls touch git")
    given = {"PATH": f"{own}:{tools}", "HOME": str(home), "CI": "true", "https_proxy": "p"}
    done = subprocess.run(
        [tree / ".ci" / "run"], env=given | {"WANDB_API_KEY": "k", "XDG_CACHE_HOME": str(home)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 5, done.stderr
    seen = done.stdout.splitlines()
    variables = dict(line.split("=", 1) for line in seen if "=" in line)
    assert (variables["CI"], variables["https_proxy"]) == ("true", "p")
    assert variables["PIP_CONFIG_FILE"] == str(home / ".config" / "pip" / "pip.conf")
    assert str(own) not in variables["PATH"]
    assert variables.keys().isdisjoint({"WANDB_API_KEY", "XDG_CACHE_HOME"})
    assert not {".venv", "bin", ".config"} & set(seen)
    assert ("not-committed" in seen) is not checkout
    assert not Path(variables["HOME"]).parent.exists()
    assert sorted(os.listdir(tree)) == sorted([".ci", ".venv", "not-committed", *([".git"] if checkout else [])])


LEFT_BEHIND = ("goodput-logs", "elsewhere", ".benchmarks", ".hypothesis")
"""Files that recorders of earlier tests, benchmarks and generated examples left in the working directory."""


SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Python 3.11 extracts without a filter before 3.11.4."""


def test_source_distribution_runs_its_tests(tmp_path: Path) -> None:
    """It contains all files under version control, and tests run in the unpacked directory."""
    tree, built = tmp_path / "tree", tmp_path / "dist"
    made = (".git", ".venv*", ".*_cache", "__pycache__", "*.egg-info", *LEFT_BEHIND)
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*made))
    make = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
    python(tree, "-W", "ignore", "-c", make, str(built))
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, **SAFELY)
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    missing = [path for path in files_of(tree) - {Path("PKG-INFO")} if not (unpacked / path).exists()]
    assert not missing
    said = python(unpacked, "-m", "pytest", "-q", "-p", "no:cacheprovider", *A_FEW_TESTS)
    assert re.search(r"\d+ passed", said)
    assert python(unpacked, "-c", "import goodput_cli; print(goodput_cli.__file__)").startswith(str(unpacked))


A_FEW_TESTS = ("tests/accounting/test_examples.py", "tests/vocabulary/test_categories.py")


def files_of(tree: Path) -> set[Path]:
    leave = {".hypothesis", ".benchmarks", "build", "dist"}
    relative = (path.relative_to(tree) for path in tree.rglob("*") if path.is_file())
    return {path for path in relative if path.parts[0] not in leave and not path.parts[0].endswith(".egg-info")}


def python(folder: Path, *arguments: str) -> str:
    """Return the output of this interpreter, run in a directory. PYTHONPATH precedes installed packages."""
    environment = {**os.environ, "PYTHONPATH": "."}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_makefile_has_its_targets() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("install", "demo", "test", "test-frameworks", "test-prometheus", "lint", "format", "bench", "clean"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    sample = re.search(r"sample_logs/\S+", makefile)
    assert sample is not None
    assert (ROOT / sample[0]).exists()


def test_recorder_wheel_needs_nothing_and_runs_on_old_pythons() -> None:
    """`make lint` checks types and style for the Python version that the wheel declares."""
    wheel = tomllib.loads((ROOT / "recorder" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = wheel["requires-python"].removeprefix(">=")
    assert wheel["dependencies"] == []
    imported = imported_modules(ROOT / "goodput_cli" / "record") - set(sys.stdlib_module_names)
    assert imported <= {*CALLED_BY, "google", "goodput_cli"}  # all three are imported on demand, never at the top
    target = PROJECT["tool"]["ruff"]["per-file-target-version"]["goodput_cli/record/**"]
    assert target == "py" + oldest.replace(".", "")
    assert f"--python-version {oldest}" in (ROOT / "Makefile").read_text(encoding="utf-8")
