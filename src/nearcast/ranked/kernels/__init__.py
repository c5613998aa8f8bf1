"""Loops that the ranked engine and its indexes share."""
