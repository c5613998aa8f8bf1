"""Step 2: share out the work among shards."""
