"""What a log line means: raw records in, one canonical event table out."""
