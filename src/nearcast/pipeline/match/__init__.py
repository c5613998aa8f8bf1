"""Step 4: match the stream of messages."""
