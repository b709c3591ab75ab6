"""Cloud Logging: `cloud-logging://PROJECT/LOG_ID`, in pages of 1000 entries."""
