"""Pages in a real browser: the system's chromium, driven by playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
DESKTOP, PHONE = 1280, 390

CUT = """[...document.querySelectorAll("table")].filter((table) => {
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
  const shown = rows.filter((row) => row.checkVisibility({ contentVisibilityAuto: true }));
  const said = table.closest(".rows")?.querySelector(".printed");
  const words = `${shown.length} of ${rows.length} `;
  return shown.length < rows.length && !(said?.checkVisibility() && said.textContent.startsWith(words));
}).length"""
"""Script that counts truncated tables without a message."""


def chromium() -> str:
    """Return the path of the browser: GOODPUT_CHROMIUM, or chromium on the PATH."""
    for name in (os.environ.get("GOODPUT_CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise RuntimeError("no chromium: install it (apt-get install chromium), or name one with GOODPUT_CHROMIUM")


@dataclass
class Tab:
    """A page in the browser and its activity: console messages, errors, other requests, dialogs."""

    page: Any
    said: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def is_quiet(self) -> bool:
        assert (self.said, self.errors, self.requests, self.dialogs) == ([], [], [], [])
        return True

    def refuse(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def evaluate(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    def until(self, expression: str) -> None:
        """Wait until an expression is true. (The function of playwright needs `eval`, which the page forbids.)"""
        for _ in range(200):
            if self.evaluate(expression):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"never true: {expression}")


@contextmanager
def launched() -> Iterator[Any]:
    """Launch the browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=chromium(), args=sandbox)
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: Any, file: Path, *, width: int = DESKTOP, dark: bool = False, scripts: bool = True, drawn: bool = True
) -> Iterator[Tab]:
    """Open a file in a new tab and wait, if it has scripts, until its charts are drawn."""
    scheme = "dark" if dark else "light"
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
    )
    tab = Tab(context.new_page())
    tab.page.on("console", lambda message: tab.said.append(message.text))
    tab.page.on("pageerror", lambda error: tab.errors.append(str(error)))
    tab.page.on("dialog", tab.refuse)
    tab.page.on("request", lambda request: tab.requests.append(request.url))
    tab.page.goto(file.as_uri())
    if scripts and drawn:
        tab.page.wait_for_selector("html[data-charts=drawn]", timeout=60_000)
    tab.requests.remove(file.as_uri())
    yield tab
    context.close()
