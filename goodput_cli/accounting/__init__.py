"""Where every second goes: docs/accounting.md as pure functions on NumPy columns.

The order of this folder is that of the rules; `build.py` makes the calls:

    §1   order.py                      events of one job in order, each once
         build.py                      the job window, and whether the job has ended
    §3   attempts/bursts.py            start lines of many ranks -> one start
         attempts/attempts.py          where each begins; regions, restarts and reloads: without a start line
         attempts/endings.py           how each ended, and its last sign of life
         claims/intervals.py           start and end lines -> intervals
    §4   training/progress.py          spans or checkpoints -> lineage -> what is kept -> last steps
    §5   claims/claims.py, downtime.py, loading.py    what each event claims, by claims/priority.py
         overlaps.py                   sweep.py: one claim an instant; the cut of spans that are kept in part
    §6   training/reference.py         the reference step time, and the slowdown it makes
         training/kept.py              kept training with its start-up and stalls
    §5   segments.py                   claims, then kept_time.py, then `other` -> segments
    §7   ledger.py                     running totals of segments: any window is a difference of two look-ups
    §10  attempts/runs.py              where a job name was used again

`columns.py` and `rules.py` are for all of them. No I/O, no clock and no printing in here.
"""
