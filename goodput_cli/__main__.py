"""The entry point of the command `goodput`, and of `python -m goodput_cli`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command. Ctrl-C while it is still being imported ends it as later: a word, and exit code 130."""
    try:
        from goodput_cli.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
