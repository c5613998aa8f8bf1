"""Each subscription in the lists of its keywords, each list in groups that are pruned as a whole."""
