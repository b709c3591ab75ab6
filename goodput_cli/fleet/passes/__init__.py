"""The two passes over the documents of a fleet, in this process or on a cluster."""
