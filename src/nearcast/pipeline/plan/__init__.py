"""Step 2: split the work over shards."""
