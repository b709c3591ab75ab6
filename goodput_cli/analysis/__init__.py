"""What a person asks: one folder a question, from a `Timeline` to a frozen result and the table that shows it."""
