"""What a log leaves open: clocks that differ, time that no line covers, hosts that did not write."""

from __future__ import annotations

from goodput_cli.diagnostics.codes.code import Code

CLOCKS: dict[str, Code] = {
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

_PROGRAMS = "megatron megatron-progress launcher torchtitan nemo2 deepspeed dlrover progress-bars mllog one-logger"
"""Formats of what trainers and launchers print."""
_LAUNCHER = "Add the lines of the launcher (torchrun, Slurm) or `sacct -P`: they say how a process ended."

COVERAGE: dict[str, Code] = {
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
        of_formats={_PROGRAMS: _LAUNCHER},
    ),
    "undetermined_time": Code(
        "warning",
        "A checkpoint log does not say when attempts died.",
        "Lost progress and restart cannot be told apart: the time is disruption_undetermined.",
        "Log job_terminated or job_crashed, or step_finished more often.",
        of_formats={_PROGRAMS: _LAUNCHER},
    ),
    "no_checkpoint_events": Code(
        "warning",
        "The log holds no event of a save or a restore.",
        "Checkpoint badput is unknown, not 0: blocking saves hide in productive, and what is at risk is unknown.",
        "Log saves and restores, or add the log that has them to the sources; a mapping reads lines of your own.",
        of_formats={
            "megatron": "Megatron prints them where --save and --load are given; if it saved, add rank 0's output.",
            "resiliency": "Log checkpoint_saved and checkpoint_loaded.",
            "goodput": "Record them with `checkpoint_save` and `checkpoint_restore` of the recorder.",
            "recorder mldiagnostics maxtext": "Turn on Orbax' structured checkpoint log, or add it to the sources.",
            "tensorboard wandb": "Such files hold none: add the output (stdout) of the job to the sources.",
        },
    ),
    "save_time_unknown": Code(
        "info",
        "Saves are logged, but not how long they blocked.",
        "Save badput is unknown, not 0: it hides in productive.",
        "Log step_finished beside checkpoint_saved, or use Orbax' structured log.",
        of_formats={_PROGRAMS: "Print the line of a save when it begins and when it ends, or how long it took."},
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

HOSTS: dict[str, Code] = {
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
