"""What a fresh machine relies on: dependencies that are declared, pinned, and the commands of the Makefile."""

from __future__ import annotations

import ast
import os
import re
import sys
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

ROOT = Path(__file__).parent.parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = [re.fullmatch(r"([A-Za-z0-9._-]+)==(\S+)", line) for line in lines if line and not line.startswith("#")]
    assert all(found), "constraints.txt holds exact versions only"
    return {canonicalize_name(match[1]): match[2] for match in found if match}


def requirements() -> list[Requirement]:
    project = PROJECT["project"]
    listed = [*PROJECT["build-system"]["requires"], *project["dependencies"]]
    listed += [text for extra in project["optional-dependencies"].values() for text in extra]
    return [Requirement(text) for text in listed if not text.startswith(DISTRIBUTION)]


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_every_dependency_is_pinned_within_its_range(requirement: Requirement) -> None:
    version = pins()[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(version)


def test_whatever_the_package_imports_is_declared() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    listed = [*PROJECT["project"]["dependencies"], *(text for name in extras if name != "dev" for text in extras[name])]
    declared = {canonicalize_name(Requirement(text).name) for text in listed}
    installed = packages_distributions()
    for name in sorted(imported_modules(ROOT / "goodput_cli") - set(sys.stdlib_module_names) - {"goodput_cli"}):
        providers = {canonicalize_name(provider) for provider in installed.get(name, [name])}
        assert providers & declared, f"{name} is imported and not declared"


def imported_modules(folder: Path) -> set[str]:
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found


def test_the_command_and_the_version() -> None:
    (command,) = entry_points(group="console_scripts", name="goodput")
    assert command.load() is main
    assert PROJECT["project"]["version"] == goodput_cli.__version__
    assert (ROOT / "goodput_cli" / "py.typed").exists()


def test_the_oldest_python_is_the_same_everywhere() -> None:
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert PROJECT["tool"]["mypy"]["python_version"] == oldest
    assert PROJECT["tool"]["ruff"]["target-version"] == "py" + oldest.replace(".", "")
    assert str(tuple(int(part) for part in oldest.split("."))) in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_continuous_integration_runs_the_tests() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text(encoding="utf-8")


def test_the_makefile_has_its_targets() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("install", "demo", "test", "lint", "format", "bench", "clean"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    sample = re.search(r"sample_logs/\S+", makefile)
    assert sample is not None
    assert (ROOT / sample[0]).exists()
