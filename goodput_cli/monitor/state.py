"""What a monitor must remember over a restart, in a small file that is written whole."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def load_state(path: Path) -> dict[str, Any]:
    """What was kept; {} where nothing was, or where it cannot be read."""
    try:
        state = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def keep_state(path: Path, state: dict[str, Any]) -> None:
    """Keep it. Raises OSError."""
    temporary = path.with_name(f"{path.name}.tmp")
    with open(temporary, "w", encoding="utf-8") as stream:
        json.dump(state, stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, path)


def state_folder() -> Path:
    """Where state is kept that has no place of its own: $XDG_STATE_HOME/goodput. Raises OSError."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "goodput"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
