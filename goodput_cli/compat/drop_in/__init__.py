"""The names of other libraries, so that a program moves over by changing its imports."""
