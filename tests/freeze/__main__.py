"""`python -m tests.freeze write DIR`, `python -m tests.freeze compare DIR`: write the outputs of all cases, and
compare them.

Write them with the old code, change the code, compare. Both accept a part of the names of cases (`write DIR steps.`)
and `--jobs N`, the number of processes (2). The repository contains only a digest of the quick cases (`digests.json`,
checked by test_freeze.py; `python -m tests.freeze digest` writes it again).
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

from tests.freeze.cases import Case, cases, quick_cases
from tests.freeze.run import DIGESTS, digest_of, import_all, output_of

_SHOWN = 14


def outputs(only: str, jobs: int) -> Iterator[tuple[Case, str]]:
    """Yield every case whose name contains `only`, with its output, computed by `jobs` processes."""
    chosen = [case for case in cases(drawn=True) if only in case[0]]
    import_all()
    with get_context("fork").Pool(jobs) as pool:
        yield from zip(chosen, pool.imap(output_of, [arguments for _, arguments in chosen]), strict=True)


def write(folder: Path, only: str, jobs: int) -> int:
    """Write every output as a file and return their number."""
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for (name, _), output in outputs(only, jobs):
        (folder / name).write_text(output)
        written += 1
    print(f"{written} outputs written")
    return written


def compare(folder: Path, only: str, jobs: int) -> int:
    """Print the differences and return the number of outputs that differ. A case on only one side differs."""
    differ = compared = 0
    missing = {path.name for path in folder.iterdir() if only in path.name}
    for (name, arguments), now in outputs(only, jobs):
        before = (folder / name).read_text() if name in missing else "no such case\n"
        missing.discard(name)
        compared += 1
        if before == now:
            continue
        differ += 1
        print(f"== {name}: goodput {' '.join(arguments)}")
        lines = list(difflib.unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=0))[2:]
        print("\n".join(line[:300] for line in lines[:_SHOWN]))
    print("".join(f"== {name}: no such case any more\n" for name in sorted(missing)), end="")
    print(f"{compared} outputs compared, {differ + len(missing)} differ")
    return differ + len(missing)


def main() -> int:
    """Run the command line: the verb, the directory, and a part of the names of cases."""
    parser = argparse.ArgumentParser("python -m tests.freeze", description=__doc__)
    parser.add_argument("verb", choices=("write", "compare", "digest"))
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/freeze"))
    parser.add_argument("only", nargs="?", default="")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    if given.verb == "write":
        return int(write(given.folder, given.only, given.jobs) == 0)
    if given.verb == "compare":
        return int(compare(given.folder, given.only, given.jobs) > 0)
    DIGESTS.write_text(json.dumps({name: digest_of(line) for name, line in quick_cases()}, indent=0) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
