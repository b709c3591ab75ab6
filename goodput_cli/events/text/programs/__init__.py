"""What each program prints, and what its lines mean together."""
