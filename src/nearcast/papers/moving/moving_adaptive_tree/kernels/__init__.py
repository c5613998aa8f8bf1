"""The loops of the moving adaptive tree, one module for each step."""
