"""`python -m tests.freeze write DIR`, `python -m tests.freeze compare DIR`: outputs of every case, and what differs.

Write them with the code as it was, change the house, compare. Nothing of it is kept in the repository but a digest of
the quick ones (`digests.json`, held by test_freeze.py; `python -m tests.freeze digest` writes it anew).
"""

from __future__ import annotations

import difflib
import json
import sys
from pathlib import Path

from tests.freeze.cases import cases, quick_cases
from tests.freeze.run import DIGESTS, digest_of, output_of

_SHOWN = 14


def write(folder: Path, only: str) -> None:
    """Every output as a file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, arguments in cases(drawn=True):
        if only in name:
            (folder / name).write_text(output_of(arguments))


def compare(folder: Path, only: str) -> int:
    """Says what differs; how many outputs do."""
    differ = 0
    for name, arguments in cases(drawn=True):
        if only not in name or not (folder / name).exists():
            continue
        before, now = (folder / name).read_text(), output_of(arguments)
        if before == now:
            continue
        differ += 1
        print(f"== {name}: goodput {' '.join(arguments)}")
        lines = list(difflib.unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=0))[2:]
        print("\n".join(line[:300] for line in lines[:_SHOWN]))
    print(f"{differ} outputs differ")
    return differ


def main() -> int:
    """The verb, the folder, and a part of the names of cases."""
    match sys.argv[1:]:
        case ["write", folder, *only]:
            write(Path(folder), "".join(only))
        case ["compare", folder, *only]:
            return min(compare(Path(folder), "".join(only)), 1)
        case ["digest"]:
            DIGESTS.write_text(json.dumps({name: digest_of(given) for name, given in quick_cases()}, indent=0) + "\n")
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
