"""As `group_pruned`, but every entry of a list is tested by itself."""
