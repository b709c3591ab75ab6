"""Targets of a monitor: files, metrics over HTTP, TensorBoard, Cloud Monitoring, messages."""
