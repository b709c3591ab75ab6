"""What is noticed when time is accounted for: events that contradict one another.

What a log leaves open: clocks that differ, time that no line covers, hosts that did not write.

What is noticed when a question is answered: runs that do not compare, advice that has too little to go by.
"""

from __future__ import annotations

from goodput_cli.diagnostics.codes import Code

ACCOUNTING: dict[str, Code] = {
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
    "long_gap": Code(
        "info",
        "A day or more in which no line explains what happened; or an hour and a quarter of the job between the lines "
        "of two files. Not where the step numbers go on behind it, nor, in one file, behind an end that was logged: "
        "that is an outage of one job. A month without a line is said whatever the lines on its sides say.",
        "It counts as down, or as unexplained, and lowers goodput.",
        "If what lies on its two sides are two jobs, name the files of one alone, or ask for a part with --from.",
    ),
    "two_writers": Code(
        "warning",
        "Two processes wrote the job's log at once: a program that was started twice, or one that its restart left "
        "behind.",
        "Both are read as one job: of a step that both report the earliest line counts, and what only one of them did "
        "counts too. Goodput may be true of neither.",
        "End one of them, or give each a rank or a file of its own; `run_id` in its lines tells the second one's.",
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
        "Steps finished while a save was under way, or a line of a save says that training went on.",
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
        "Wasted progress and restart cannot be told apart: the time is disruption_undetermined.",
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


COMPARING: dict[str, Code] = {
    "methods_differ": Code(
        "warning",
        "Two sides of a comparison were not measured in the same way: another reference step time, or other options.",
        "Part of the difference comes from the measuring and not from the runs.",
        "Give both sides the same options, --reference-step-time first of all; save a saved analysis anew with them.",
    ),
}

ADVICE: dict[str, Code] = {
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
