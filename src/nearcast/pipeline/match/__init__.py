"""Step 4: match a stream of messages."""
