"""A record of lives, and what it would have been under another policy: nothing here knows the accounting."""
