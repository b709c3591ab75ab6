"""Compiled templates are cached for the next page. The cache is used only if it is complete and private."""

from __future__ import annotations

import os
from pathlib import Path

import jinja2
import pytest

from goodput_cli.report.html import page as ready_made
from goodput_cli.report.html.page import _environment


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GOODPUT_CACHE_DIR", str(tmp_path))
    return tmp_path / "pages"


def test_cache_is_readable_only_by_its_owner(folder: Path) -> None:
    assert ready_made.read("a") is None
    ready_made.keep("a", b"one\ntwo")
    assert ready_made.read("a") == b"one\ntwo"
    assert (folder / "a").stat().st_mode & 0o777 == 0o600
    assert os.listdir(folder) == ["a"]


@pytest.mark.parametrize("damage", [b"", b"x", b"\n", b"0" * 64 + b"\none\ntwo"])
def test_damaged_cache_is_not_used(folder: Path, damage: bytes) -> None:
    ready_made.keep("a", b"one\ntwo")
    (folder / "a").write_bytes(damage)
    assert ready_made.read("a") is None


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_cache_writable_by_others_is_not_used(folder: Path, mode: int) -> None:
    ready_made.keep("a", b"one\ntwo")
    (folder / "a").chmod(mode)
    assert ready_made.read("a") is None


def test_missing_cache_directory_is_not_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("GOODPUT_CACHE_DIR", str(tmp_path / "file"))
    ready_made.keep("a", b"one")
    assert ready_made.read("a") is None


def test_templates_are_recompiled_only_when_they_change(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str | None] = []
    compile_ = jinja2.Environment.compile

    def counted(self: jinja2.Environment, source: str, name: str | None, *rest: object) -> object:
        compiled.append(name)
        return compile_(self, source, name, *rest)  # type: ignore[call-overload]

    monkeypatch.setattr(jinja2.Environment, "compile", counted)
    environment = _environment.__wrapped__
    environment().get_template("page.html")
    environment().get_template("page.html")
    assert compiled == ["page.html"]
    (kept,) = folder.iterdir()
    kept.write_bytes(b"damaged")
    environment().get_template("page.html")
    assert compiled == ["page.html"] * 2
