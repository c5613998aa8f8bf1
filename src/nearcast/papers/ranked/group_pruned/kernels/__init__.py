"""The loops of group pruning."""
