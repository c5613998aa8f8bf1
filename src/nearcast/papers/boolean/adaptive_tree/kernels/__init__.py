"""The loops of the adaptive tree, one module for each step."""
