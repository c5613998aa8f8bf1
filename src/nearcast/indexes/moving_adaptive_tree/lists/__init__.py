"""The lists themselves: append, empty, clear away."""
