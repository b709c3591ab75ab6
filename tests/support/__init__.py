"""Shared helpers of tests: short log builders, servers, readers of documents."""
