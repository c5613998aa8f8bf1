"""Step 3: build the index of each shard and publish all of them as one version."""
