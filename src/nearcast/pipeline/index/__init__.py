"""Step 3: build the index of each shard and publish them as one version."""
