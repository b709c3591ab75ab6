"""Logs in buckets: an `ObjectStore` per kind of store, and one way to find and fetch objects for all of them."""
