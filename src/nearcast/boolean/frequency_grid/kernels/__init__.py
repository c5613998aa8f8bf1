"""The loops of the frequency grid, one module for each step of building, matching and updating."""
