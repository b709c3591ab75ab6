"""What is noticed when time is accounted for: events that contradict one another."""

from __future__ import annotations

from goodput_cli.diagnostics.codes.code import Code

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
