"""Accounting of all time (docs/accounting.md) as pure functions on NumPy columns.

The modules follow the order of the rules; `build.py` makes the calls:

    §1   order.py                      events of one job in order, each once
         attempts/attempts.py          the start of the job window
         attempts/endings.py           its end, and whether the job has ended
    §3   attempts/rank_starts.py       start lines of many ranks -> one start; rollbacks and joins, which are none
         attempts/restarts.py          step logs: starts that no line shows
         attempts/attempts.py          begin of each attempt, and its events
         attempts/endings.py           how each ended, and its last sign of life
         intervals.py                  start and end lines -> intervals
    §4   training/progress.py          spans or checkpoints -> lineage -> kept steps -> last steps
    §5   claims.py                     the time that each event claims, and the priority of claims
         sweep.py                      one claim at any time; the cut of spans that are kept in part
    §6   training/spans.py             the usual step time; slowdown and stalls are cut in training/kept.py
    §5   segments.py                   claims, then kept time, then `other` -> segments
    §7                                 and the ledger, their running totals: any window is a difference of two lookups
    §10  attempts/failure_cause.py     cause of the end of an attempt, from attempts/evidence_of_attempts.py

`columns.py` and `options.py` serve all of them. No I/O, no clock and no printing here.
"""
