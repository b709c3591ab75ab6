"""Cloud Logging: `cloud-logging://PROJECT/LOG_ID`. Entries arrive as raw protobuf pages of 1000."""
