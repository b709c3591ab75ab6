"""What is known of each run once it is accounted for, and where it is kept."""
