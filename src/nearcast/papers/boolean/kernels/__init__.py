"""Loops that several of the papers' boolean indexes share."""
