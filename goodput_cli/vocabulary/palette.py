"""The look of categories: one colour and one letter each, the same in every picture, on the terminal and in files.

Colours are after Okabe and Ito: families differ in hue also for people who see fewer colours, members of a family in
lightness. Nothing is told by colour alone: a legend has the letter, a picture a label or a pattern beside it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """colour: `#rrggbb`, to be seen on white and on black. basic: one of a terminal's 16 colours, where a family shares
    one or two. letter: one ASCII character, no two alike."""

    colour: str
    basic: str
    letter: str


LOOKS: dict[str, Look] = {
    "productive": Look("#009e73", "green", "="),
    # coming up: blues
    "program_startup": Look("#1f5fa8", "blue", "S"),
    "tpu_initialization": Look("#3a87c8", "blue", "T"),
    "training_prep": Look("#6aaede", "bright_blue", "P"),
    "data_loading_sync": Look("#9fd0f0", "bright_cyan", "D"),
    # checkpoints: purples
    "unproductive_checkpoint_save_time": Look("#cc79a7", "magenta", "C"),
    "unproductive_checkpoint_restore_time": Look("#8d5a9e", "bright_magenta", "R"),
    # disruptions: orange to red
    "wasted_progress_from_disruption": Look("#d55e00", "red", "X"),
    "infrastructure_recovery_from_disruption": Look("#e69f00", "yellow", "!"),
    "custom_badput_events": Look("#d8c920", "bright_yellow", "E"),
    # elastic slices: browns
    "elastic_slice_down": Look("#7f4f24", "cyan", "d"),
    "elastic_scale_up": Look("#a67c52", "cyan", "u"),
    "elastic_reinitialization": Look("#c9a57b", "cyan", "i"),
    "step_stall": Look("#882255", "bright_red", "Z"),
    "training_slowdown": Look("#b0567e", "bright_red", "~"),
    "disruption_undetermined": Look("#f0a878", "bright_red", "?"),
    # nobody trained, nobody tried: greys
    "stopped": Look("#8a8a8a", "bright_black", "_"),
    "queued": Look("#a6a6a6", "white", "q"),
    "excluded": Look("#c4c4c4", "white", "-"),
    "other": Look("#6b6b6b", "bright_black", "."),
}
"""By category name, in the order in which people are shown them."""
