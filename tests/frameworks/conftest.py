"""Frameworks are large: these tests run where GOODPUT_FRAMEWORKS is set, not with the others."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "record"))
collect_ignore_glob = [] if os.environ.get("GOODPUT_FRAMEWORKS") else ["test_*.py"]
