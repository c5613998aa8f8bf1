"""The loops of the frequency pyramid, one module for each step."""
