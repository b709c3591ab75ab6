"""What all Parquet files share."""
