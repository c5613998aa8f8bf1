"""Each subscription in the list of each of its keywords, each list in groups that are pruned as a whole."""
