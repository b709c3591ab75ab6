"""Where a monitor publishes: files, metrics over HTTP, TensorBoard, Cloud Monitoring, messages."""
