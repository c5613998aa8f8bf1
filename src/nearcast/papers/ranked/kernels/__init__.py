"""Loops that several of the papers' ranked indexes share."""
