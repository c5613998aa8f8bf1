"""Skype's engine: it drives an index message by message and keeps skyband buffers behind each list."""
