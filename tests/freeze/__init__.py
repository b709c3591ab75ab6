"""The freeze: the output of every command in every format, so that a refactoring can be checked for changes."""
