"""The earlier place of `goodput_cli.fetch`: `from goodput_cli.fetch import fetch` goes on working.

An import of this module binds its name in the package, where `fetch` is a function: so the function stands in for it.
"""

import sys

from goodput_cli.api.fetch import fetch

fetch.fetch = fetch  # type: ignore[attr-defined]
sys.modules[__name__] = fetch  # type: ignore[assignment]
