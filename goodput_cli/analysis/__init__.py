"""Questions of users: one package per question, from a `Timeline` to a frozen result and the table that shows it."""
