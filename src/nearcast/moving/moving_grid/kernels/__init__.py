"""The loops of the moving grid, one module for each step of a message or a move."""
