"""`--help` of every command comes at once: it imports nothing that takes long."""

from __future__ import annotations

import subprocess
import sys

_HEAVY = {"numpy", "pandas", "pyarrow", "msgspec", "vl_convert", "jinja2", "google.cloud", "grpc", "boto3", "dask"}
_ALL_HELP = f"""
import sys
from goodput_cli.cli.main import COMMANDS, run
for name in [None, *COMMANDS]:
    assert run([*([name] if name else []), "--help"]) == 0
    loaded = sorted({_HEAVY} & set(sys.modules))
    assert not loaded, (name, loaded)
print(len(COMMANDS), "commands", file=sys.stderr)
"""


def test_no_help_imports_what_takes_long() -> None:
    done = subprocess.run([sys.executable, "-c", _ALL_HELP], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stderr.split()[0]) > 10
