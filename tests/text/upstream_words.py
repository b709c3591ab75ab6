"""Compare the words of `upstream_words.toml` with the sources of their releases: `make upstream-words`. It needs a
network and is not part of the tests."""

from __future__ import annotations

import sys
import tomllib
import urllib.request
from functools import cache
from pathlib import Path

WORDS = Path(__file__).with_suffix(".toml")
SOURCE = "https://raw.githubusercontent.com/{program}/{release}/{file}"


@cache
def text_of(url: str) -> str:
    """Return the text of a source file."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode("utf-8", "replace"))


def missing_words() -> list[str]:
    """Return a line for each literal that its release no longer contains, or that cannot be compared."""
    found = []
    for word in tomllib.loads(WORDS.read_text(encoding="utf-8"))["word"]:
        url = SOURCE.format(**word)
        try:
            gone = word["literal"] not in text_of(url)
        except OSError as error:
            found.append(f"{url}: {error}")
            continue
        found += [f"{url}: no longer contains {word['literal']!r}"] if gone else []
    return found


if __name__ == "__main__":
    lines = missing_words()
    print("\n".join(lines) or "every literal is in the source of its release")
    sys.exit(1 if lines else 0)
