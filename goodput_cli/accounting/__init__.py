"""Where every second goes: docs/accounting.md as pure functions on NumPy columns.

The order of this folder is that of the rules; `build.py` makes the calls:

    §1   order.py                      events of one job in order, each once
         build.py                      the job window, and whether the job has ended
    §3   attempts/rank_starts.py       start lines of many ranks -> one start
         attempts/restarts.py          step logs: starts that no line shows
         attempts/attempts.py          where each begins, and which events are its own
         attempts/endings.py           how each ended, and its last sign of life
         intervals.py                  start and end lines -> intervals
    §4   training/progress.py          spans or checkpoints -> lineage -> what is kept -> last steps
    §5   claims.py                     what each event claims, and which claim comes first
         sweep.py                      one claim an instant; the cut of spans that are kept in part
    §6   training/spans.py             the usual step time; slowdown and stalls are cut in training/kept.py
    §5   segments.py                   claims, then kept time, then `other` -> segments
    §7                                 and the ledger, their running totals: any window is a difference of two look-ups
    §10  attempts/failure_cause.py     why an attempt died, by what attempts/evidence_of_attempts.py gives it

`columns.py` and `options.py` are for all of them. No I/O, no clock and no printing in here.
"""
