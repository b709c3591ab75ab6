"""What `goodput fleet` answers: rows, JSON, and the sheet that people see."""
