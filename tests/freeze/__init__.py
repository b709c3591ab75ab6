"""The freeze: what every command writes in every format, so that a change of shape can be held to change nothing."""
