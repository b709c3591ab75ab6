"""Every diagnostic code: how grave it is, what it means, what it does to the numbers, and what to do about it.

The only place that says so: `Diagnostic.of` takes the severity from here and refuses a code without a row,
`goodput check` prints these texts, and docs/diagnostics.md is made of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The gravest first."""


@dataclass(frozen=True)
class Code:
    """What is known of a diagnostic before it occurs. The texts are sentences."""

    severity: Severity
    """`error` lost data, `warning` may change a number, `info` changes none."""
    meaning: str
    """What was noticed."""
    effect: str
    """What that does to the numbers."""
    advice: str
    """What to do about it."""
    mild: Severity | None = None
    """How grave its mild cases are, where it has some: the meaning says which."""


_READING = {
    "malformed_lines": Code(
        "error",
        "Lines that hold no JSON object: cut off, not UTF-8, nested too deep, or text of another program.",
        "The lines do not count. If they were events, what they said is missing.",
        "Look at the first places; if a writer was killed in the middle of a line, one line is lost, no more.",
    ),
    "not_a_log": Code(
        "info",
        "Files of a folder that are plainly no logs: one JSON value over several lines that names no job, or text in "
        "which no line says anything.",
        "None: they are not read.",
        "Name such a file if it is a log all the same.",
    ),
    "damaged_store_part": Code(
        "warning",
        "A part of the store of `goodput fleet` cannot be read.",
        "None: what it held is read and accounted for again.",
        "Look at the disk; the part may be deleted.",
    ),
    "unused_label_rows": Code(
        "info",
        "Rows of --labels that fit no run.",
        "None by themselves; what they were meant for may be in the group (none).",
        "Compare the names of jobs and sources in them with those of the runs.",
    ),
    "one_name_in_two_clusters": Code(
        "warning",
        "Documents of two clusters, by --labels, hold one job name at the same time.",
        "They are one job: if they are two, each seems disrupted by the other.",
        "Tell them apart with --distinct-by cluster.",
    ),
    "truncated_file": Code(
        "error",
        "A packed file ends or breaks before its end.",
        "Everything before the break counts, what came after is lost: the job may seem to end too early.",
        "Fetch the file again, or wait until its writer has closed it.",
    ),
    "object_replaced": Code(
        "warning",
        "An object of a bucket was written again while it was read, and is read as it was when it was listed.",
        "None, if the listed state could still be had; the message says what is missing otherwise.",
        "Read again once its writer has finished.",
    ),
    "object_deleted": Code(
        "error",
        "An object of a bucket was deleted between the listing and the reading.",
        "Its lines do not count; the others do.",
        "Look who deletes the logs; a longer retention, or a snapshot (goodput fetch), keeps them.",
    ),
    "lookback_truncated": Code(
        "warning",
        "Cloud Logging was not read back to the job's beginning, or may hold older entries.",
        "What came before is not in the window: the job seems to start later than it did.",
        "Raise --lookback; entries beyond the log's retention are gone.",
    ),
    "bad_value": Code(
        "error",
        "An event holds a value that cannot be what its key says: a time out of range, a step that is no number.",
        "The event is dropped (a bad rank is dropped alone); its time goes to what the other events say, or to other.",
        "Repair the writer; times are epoch seconds, or ISO-8601 in resiliency logs.",
    ),
    "missing_job_name": Code(
        "error",
        "An event does not say which job it is of.",
        "It is dropped: it belongs to no job.",
        "Let the writer set job_name on every line.",
    ),
    "unplaced_duration": Code(
        "error",
        "A checkpoint line has a duration but no start time, and no envelope whose timestamp would be its end.",
        "That duration claims no time; the save or restore is missing from its category.",
        "Export the entries with their timestamps (gcloud logging read --format=json), not the payloads alone.",
    ),
    "unrecognised_lines": Code(
        "warning",
        "JSON objects that no log format recognises, or a text in which no line says anything.",
        "They do not count. Harmless if another program writes into the same log.",
        "If they should be events, compare their keys with docs/formats.md; `goodput check --suggest FILE` drafts a "
        "mapping of a text.",
    ),
    "unknown_event": Code(
        "warning",
        "A resiliency or native event of a type that is not known.",
        "It does not count: neither as a sign of life nor as an end.",
        "Use the types of docs/formats.md, or ignore it if the event says nothing about time.",
    ),
    "recorder_dropped": Code(
        "warning",
        "The recorder says that a place it writes to did not get some lines: a queue that was full, a disk, an API.",
        "What they said is missing; steps that were left out count with the step before them.",
        "Read a place that has everything (a local file, say), or let the recorder write to one beside this one.",
    ),
    "earlier_attempts_missing": Code(
        "warning",
        "A monitor that publishes values of whole jobs only (`--whole-job`) follows a log that begins above step 0.",
        "None of an answer; the monitor leaves out what is of the whole job. Rolling windows are published.",
        "Name the log of the earlier attempts with `--history`, or follow the place that has all of them.",
    ),
    "clock_step": Code(
        "warning",
        "The recorder says that the clock of its machine was set while the job ran.",
        "None within the attempt, whose stamps do not go back; the time to the next attempt may be off by the step.",
        "Let the machine set its clock before jobs start; compare the downtime beside it with another host's.",
    ),
    "format_plugin_failed": Code(
        "warning",
        "An installed log format could not be loaded.",
        "Lines of that format are not read.",
        "Repair or uninstall the package that is named.",
    ),
    "ambiguous_local_time": Code(
        "warning",
        "A local time occurs twice because clocks were set back.",
        "The first of the two is taken: events of the second hour stand an hour too early.",
        "Write timestamps with an offset or Z.",
    ),
    "nonexistent_local_time": Code(
        "warning",
        "A local time was skipped when clocks were set forward, so no clock of that zone showed it.",
        "It is read with the offset before the change and may be an hour off.",
        "Check --timezone: the log is probably of another zone. Better, write timestamps with an offset or Z.",
    ),
    "naive_timestamps": Code(
        "info",
        "Timestamps without a zone are read in the zone that --timezone names (default UTC).",
        "Durations are right unless clocks changed; with a wrong zone the instants, and any mix with lines that have "
        "a zone, are off by whole hours.",
        "Give --timezone, or let the writer add the offset.",
    ),
    "timezone_found": Code(
        "info",
        "Timestamps without a zone stand in entries of Cloud Logging, whose own timestamps show the zone: their "
        "difference is a whole number of quarters of an hour, day by day.",
        "These instants are read in that zone.",
        "None needed; --timezone names a zone yourself.",
    ),
    "unknown_keys": Code(
        "info",
        "Keys that the format does not know.",
        "None: they are ignored.",
        "Nothing, unless a key is misspelt: then what it says is missing.",
    ),
}

_TEXT = {
    "other_output": Code(
        "info",
        "Lines of text, or JSON objects among them, that say nothing about time.",
        "None: programs print much else.",
        "Nothing. If some of them should count, `goodput check --suggest FILE` drafts a mapping.",
    ),
    "job_name_assumed": Code(
        "info",
        "Text names no job: it is called by its folder, or by its file where that is the only one.",
        "None.",
        "Give --job-name where another name is wanted.",
    ),
    "several_jobs_in_folder": Code(
        "warning",
        "Files of one folder overlap in time and record other steps at the same time, or name different jobs.",
        "They are different jobs, each named by its file.",
        "Name the files of one job alone, or put each job's files into a folder of its own.",
    ),
    "assumed_year": Code(
        "info",
        "Stamps without a year: they get that of the nearest stamp with one, else of the file's last change.",
        "None, unless the file was copied without its time of last change: then instants are whole years off.",
        "Give --year where another year is meant.",
    ),
    "no_clock": Code(
        "warning",
        "Lines with durations in a file in which no line has a time.",
        "Amounts are right; the last line is put at the file's last change, so that instants may be wrong.",
        "Let a stamp stand on the lines (kubectl logs --timestamps, a logger's format).",
    ),
    "step_tag": Code(
        "info",
        "An event file holds many scalars: the steps of one of them are those of training.",
        "Another scalar may be logged at other steps.",
        "Give --tensorboard-tag where another one is meant.",
    ),
    "tail_may_be_lost": Code(
        "info",
        "TensorBoard writes events every two minutes: a process that is killed loses those since the last time.",
        "Wasted time may be longer, and recovery shorter, by up to two minutes each.",
        "Nothing; a log of the launcher beside it shows when the process died.",
    ),
    "no_time_in_log": Code(
        "warning",
        "A file that trainers write holds steps and no time.",
        "It says nothing about where time went, and does not count.",
        "Use what the message names instead.",
    ),
    "runs_grouped": Code(
        "info",
        "Runs of ML Diagnostics whose names differ only in the time when they started.",
        "They are one job, each a life of it.",
        "Nothing.",
    ),
    "runs_not_grouped": Code(
        "warning",
        "Runs of ML Diagnostics are named by numbers, another one after each restart.",
        "Each counts as a job of its own: time between two lives is nobody's.",
        "Give --job-name: all runs of the source are that job then.",
    ),
    "host_silent": Code(
        "warning",
        "A host gives no more signs of life while others of its run do.",
        "None by itself; training may wait for that host.",
        "Look at the host.",
    ),
    "malformed_records": Code(
        "warning",
        "Records of an event file whose checksum is wrong, or that hold no event.",
        "They do not count; behind a record whose length is wrong nothing can be read.",
        "Copy the file again from where it was written.",
    ),
    "stamps_go_back": Code(
        "warning",
        "The stamps of a text go back by more than 2 s: the clock was set, or files were joined in another order.",
        "Each line keeps its own time; where the clock was set, time around the place is counted twice or lost.",
        "Look at the first place; name files that were joined one by one.",
    ),
    "missing_records": Code(
        "warning",
        "Records without a stamp whose step numbers jump: lines in between are missing.",
        "The jump takes no time: the job seems shorter than it was.",
        "Read the whole file, or one whose lines have stamps.",
    ),
}

_ACCOUNTING = {
    "duplicate_events": Code(
        "info",
        "Lines that say exactly what another line says: a log fetched twice, or files that overlap.",
        "None: each event counts once.",
        "Nothing.",
    ),
    "starts_mid_run": Code(
        "warning",
        "No start line stands before the first step or checkpoint: the log was cut, or a start was lost.",
        "The window begins at the first event; what came before, start-up included, is not in it.",
        "Fetch the log from further back (retention may have deleted it).",
    ),
    "multi_host_duplicates": Code(
        "warning",
        "Several hosts report the same steps.",
        "The earliest report counts and the others are dropped; step times are those of the fastest host.",
        "Let one host write the recorder's log.",
    ),
    "restart_without_start": Code(
        "info",
        "An attempt that no start line opened: steps went back, or life went on after an end line.",
        "None by itself: the attempt begins at its first start-up event or step; recovery may seem shorter.",
        "Log a start each time the program starts.",
    ),
    "end_not_believed": Code(
        "info",
        "A job end after which steps were redone or a crash was logged: programs write it in a finally block.",
        "The passage counts as a disruption, not as a planned stop.",
        "Write the job end only when training is complete.",
    ),
    "restarted_from_scratch": Code(
        "warning",
        "The job name was used again for a run that began from scratch after a clean end.",
        "Taken together, what the earlier runs did counts as wasted, and the time between them as stopped.",
        "Analyse one run with --run N or --run last, and give each run a name of its own.",
    ),
    "open_interval": Code(
        "warning",
        "A start line of a phase whose end line is missing.",
        "The phase ends at the next step or checkpoint, else at the attempt's end; it may claim too much or too "
        "little. A data load after which training went on is dropped.",
        "Log the end also when the phase fails.",
    ),
    "orphan_end": Code(
        "warning",
        "An end line of a phase that never started.",
        "It claims nothing; the phase's time is in other, or in the step around it.",
        "Fetch the log from further back, or log the start.",
    ),
    "no_checkpoint_loaded": Code(
        "info",
        "An attempt of a checkpoint log progressed without a checkpoint_loaded line.",
        "Where it began is inferred: from step 0, or from the last save before it.",
        "Log checkpoint_loaded with its step after each restore.",
    ),
    "async_saves_detected": Code(
        "info",
        "Steps finished while a save was under way.",
        "Saves of this checkpoint log claim no time, and startup is not inferred.",
        "Say --async-saves to make it explicit.",
    ),
    "reference_auto": Code(
        "info",
        "The reference step time was estimated from the log itself.",
        "Goodput moves with the estimate: two logs are not comparable, and neither is one log as it grows.",
        "Pin it with --reference-step-time.",
    ),
    "reference_too_slow": Code(
        "warning",
        "Steps are faster than the reference step time. Less than 1 % faster is a mild case.",
        "Goodput is overstated (it may exceed 100 %) and training_slowdown is negative.",
        "Measure the reference again and give a smaller --reference-step-time.",
        mild="info",
    ),
    "unrecorded_steps": Code(
        "warning",
        "The job resumed above the last step that an attempt recorded. Steps that fit into the time before its end, at "
        "most 5 minutes of them, are a mild case: the writer lost its last lines, and the checkpoint proves the steps.",
        "In mild cases these steps count as trained behind the last recorded one; otherwise only one step does.",
        "A writer that sends its lines at once loses none. Otherwise look for the log of a missing attempt, or for a "
        "checkpoint of another job.",
        mild="info",
    ),
    "gap_between_steps": Code(
        "info",
        "Time between two records of a step-end log that is neither of their steps, by the mean time that the later "
        "line names, nor of a save, an evaluation or anything else that was logged.",
        "It counts as other.",
        "Look at what the program does there; a line of it (a save, an evaluation) would give the time its name.",
    ),
    "step_longer_than_gap": Code(
        "info",
        "A line names a mean step time by which its steps took longer than the time since the record before.",
        "The time between the two records counts as training.",
        "A clock was set, or the line before came late.",
    ),
    "input_bound": Code(
        "warning",
        "Data loading covers more than half of the time of the steps.",
        "If it blocks the steps, productive holds time that was spent waiting for data.",
        "Compare with --data-loading blocking, and look at the input pipeline.",
    ),
}

_CLOCKS = {
    "clock_skew": Code(
        "warning",
        "What several ranks (or hosts) report together, one of them reports consistently early or late.",
        "Starts, ends and steps of that rank are misplaced by the skew: downtime, bursts of starts and lost steps "
        "are off by as much.",
        "Synchronise the clocks (NTP, chrony); until then, read differences below the skew as noise.",
    ),
    "clock_set_back": Code(
        "warning",
        "In the file a step follows its predecessor, but its time is earlier: the clock was set back.",
        "Events are ordered by their own time: steps seem to repeat or to restart, and time may be called wasted.",
        "Synchronise the clock by slewing it, not by stepping it, while a job runs.",
    ),
    "out_of_order": Code(
        "info",
        "Lines stand behind lines of the same source that are later.",
        "None: events are ordered by their own time. A large share hints at several writers or at buffering.",
        "Nothing, unless one writer was expected.",
    ),
    "coarse_clock": Code(
        "warning",
        "All times are whole seconds, and the steps (or the stretches between checkpoints) are short.",
        "Each one is off by up to a second: step statistics, startup and stalls are coarse; totals are right.",
        "Write times with fractions of a second.",
    ),
    "lonely_time": Code(
        "warning",
        "A few events lie far away in time from all the others: a clock that was not set, or seconds taken for "
        "milliseconds.",
        "They stretch the job window, and the time in between is called recovery, stopped or other: goodput is far "
        "too low.",
        "Remove or repair these lines, or look at the rest with --from and --to.",
    ),
    "future_times": Code(
        "warning",
        "Events of the future.",
        "The job window reaches beyond today.",
        "Check the clock of the writer and --timezone.",
    ),
}

_COVERAGE = {
    "job_without_duration": Code(
        "warning",
        "All events of the job are of one instant.",
        "There is no time to account for: the job has no goodput.",
        "Look whether its other lines carry another job name or were lost.",
    ),
    "end_not_logged": Code(
        "info",
        "The last attempt has no termination or end line: it is still running, or died in silence.",
        "The window ends with the last event; the last step has no end and is other.",
        "If the job still runs, say --as-of now; else log the end.",
    ),
    "silent_death": Code(
        "info",
        "Attempts that another one follows ended without a line that says so.",
        "Downtime begins at the last sign of life, which may be earlier than the death.",
        "Log job_terminated or job_crashed on the way out; a killed process cannot.",
    ),
    "undetermined_time": Code(
        "warning",
        "A checkpoint log does not say when attempts died.",
        "Lost progress and restart cannot be told apart: the time is disruption_undetermined.",
        "Log job_terminated or job_crashed, or step_finished more often.",
    ),
    "no_checkpoint_events": Code(
        "warning",
        "The log holds no event of a save or a restore.",
        "Checkpoint badput is unknown, not 0: blocking saves hide in productive, and what is at risk is unknown.",
        "Turn on Orbax' structured checkpoint log, or add its log to the sources.",
    ),
    "save_time_unknown": Code(
        "info",
        "Saves are logged, but not how long they blocked.",
        "Save badput is unknown, not 0: it hides in productive.",
        "Log step_finished beside checkpoint_saved, or use Orbax' structured log.",
    ),
    "log_gap": Code(
        "warning",
        "Nothing was logged for a long time in the middle of an attempt, with nothing open.",
        "A hang and lost lines look alike: without a reference the time beyond a usual step is step_stall, or it is "
        "other.",
        "Look at the job around these places, and at the log's own pipeline.",
    ),
    "missing_steps": Code(
        "warning",
        "Step numbers jump further than they usually do: step lines were lost, or steps were skipped.",
        "The time counts as training of all the numbers in between; with a reference, skipped steps overstate goodput.",
        "Log every step, or every n-th without exception.",
    ),
    "unexplained_time": Code(
        "info",
        "A tenth of the window or more is other.",
        "No event says what that time was.",
        "See `goodput timeline --category other`, and log the phases around it (custom events).",
    ),
}

_HOSTS = {
    "several_hosts": Code(
        "info",
        "Several ranks write events of the job.",
        "None: a burst of their starts is one start.",
        "Nothing.",
    ),
    "rank_missing": Code(
        "info",
        "Fewer ranks started in an attempt than in the attempt with the most.",
        "None, unless a start was lost: then the burst seems to be over too early.",
        "Check whether the job was meant to run on fewer hosts.",
    ),
    "long_silence": Code(
        "warning",
        "The answer is as of an instant more than a day behind the last line of a job whose end was not logged.",
        "The silence is part of the window: goodput falls with every day.",
        "Leave --as-of out if the job has ended; otherwise look whether its log still arrives.",
    ),
    "starts_without_rank": Code(
        "warning",
        "Start lines without a rank follow each other at once: several hosts may each have written theirs.",
        "Each counts as an attempt that led nowhere: disruptions and recovery are overstated.",
        "Let one host write the log, or write node_rank.",
    ),
    "similar_job_names": Code(
        "warning",
        "Names of jobs differ only in case, spaces or punctuation.",
        "They count as different jobs: one job's time may be split among them.",
        "Write one spelling.",
    ),
}

_COMPARING = {
    "methods_differ": Code(
        "warning",
        "Two sides of a comparison were not measured in the same way: another reference step time, or other options.",
        "Part of the difference comes from the measuring and not from the runs.",
        "Give both sides the same options, --reference-step-time first of all; save a saved analysis anew with them.",
    ),
}

_ADVICE = {
    "replay_differs": Code(
        "warning",
        "The record of the job, replayed as it was, does not give the record.",
        "No replay is shown, and what rests on one is not recorded; the curve, and levers that are exact, hold.",
        "If the message gives an amount, report it with the log: it is a bug. A job that has just lost most of what it "
        "did is advised later.",
    ),
    "save_cost_unknown": Code(
        "info",
        "No line says how long a save blocks.",
        "No interval is advised.",
        "Log step_finished beside checkpoint_saved, use Orbax' structured log, or give --save-seconds.",
    ),
    "few_failures": Code(
        "info",
        "Fewer than three failures ended training.",
        "The rate of failures is little more than a guess: the advice is never to change.",
        "Ask again when the job has run longer, or give the cluster's --mtbf.",
    ),
    "one_interval_only": Code(
        "info",
        "Only one saved step was seen.",
        "Today's interval of saves is taken from its distance to the first step trained, and may be another.",
        "Give it with --interval-now, or ask again when the job has saved twice.",
    ),
    "early_failures": Code(
        "info",
        "More failures came soon after a start than a constant rate of failures gives by chance in one case of 100.",
        "The formulas of Young and Daly do not hold; the curve, which takes the failures as they came, does.",
        "Look why starts do not hold: the same bad host, or an error that comes with every start.",
    ),
    "older_restored": Code(
        "info",
        "A newer checkpoint was complete, and an older one was restored.",
        "More was lost than the interval of saves costs: newest_checkpoint says how much.",
        "Look whether the newer checkpoint could not be read, or going back was meant.",
    ),
    "saved_unseen": Code(
        "info",
        "Training went on from a checkpoint that no line shows.",
        "What such a failure loses is kept as it was at every interval: it says nothing about how often to save.",
        "Log every save, those on the way out and of other tiers too.",
    ),
    "never_ends": Code(
        "warning",
        "With such failures the job does not come to its end, however often it saves.",
        "No interval is advised; what the levers save is known.",
        "Look at what the failures have in common, first of all at those soon after a start.",
    ),
    "save_latency_unknown": Code(
        "info",
        "Saves go on behind their blocking part, and no line says until when.",
        "They are taken to be usable at once: the interval that is advised may be a little short.",
        "Log checkpoint_saved when a save is complete.",
    ),
}

CODES: dict[str, Code] = {**_READING, **_TEXT, **_ACCOUNTING, **_CLOCKS, **_COVERAGE, **_HOSTS, **_COMPARING, **_ADVICE}
"""Every code, in the order in which docs/diagnostics.md lists them."""

_UNKNOWN = Code("warning", "", "See the message.", "See the documentation of the plug-in that reports it.")


def severity_of(code: str, mild: bool = False) -> Severity:
    """How grave a diagnostic of ours is. mild: a mild case. Raises ValueError for a code that has no row here."""
    if code not in CODES:
        raise ValueError(f"no diagnostic is called {code!r}: a new one needs a row in goodput_cli/diagnostics/codes.py")
    return (CODES[code].mild if mild else None) or CODES[code].severity


def code_texts(code: str) -> Code:
    """The texts of a code; a code of a plug-in that is not registered gets neutral ones."""
    return CODES.get(code, _UNKNOWN)
