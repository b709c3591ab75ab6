"""Units of time in nanoseconds, in which every instant and length of time is held."""

from __future__ import annotations

NS_PER_MS = 10**6
NS_PER_SECOND = 10**9
NS_PER_MINUTE = 60 * NS_PER_SECOND
NS_PER_HOUR = 60 * NS_PER_MINUTE
NS_PER_DAY = 24 * NS_PER_HOUR
