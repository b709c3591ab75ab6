"""TensorBoard's event files, read without TensorFlow.

`frames` cuts a file into records and checks them; `messages` parses a record; `reader` reads a document; `meaning`
finds which scalars are steps, evaluations and ends, and makes marks of them, which are placed as those of text are.
"""
