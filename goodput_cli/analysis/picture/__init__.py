"""The step-against-clock picture, as plain columns."""
