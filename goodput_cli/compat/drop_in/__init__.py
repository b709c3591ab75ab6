"""Modules with the names of other libraries, so that a program can switch by changing its imports."""
