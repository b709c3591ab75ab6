"""How the command asks for memory."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""`M_TRIM_THRESHOLD` and `M_MMAP_THRESHOLD` of glibc's malloc.h."""
_KEPT = 256 << 20
_OWN_MAPPING = 32 << 20


def keep_freed_memory() -> None:
    """Memory of columns that are gone is used again, and not given back to be asked for anew.

    The engine makes columns of some MB, thousands in a run. By default the allocator gives each back at once, and to
    touch new memory takes longer than the arithmetic: a third of all page faults were for nothing. Columns of over
    32 MB stay mappings of their own: those grow without being copied. Without glibc nothing happens.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_MMAP_THRESHOLD, _OWN_MAPPING)
    mallopt(_TRIM_THRESHOLD, _KEPT)
