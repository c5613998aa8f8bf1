"""Inboxes: readers of the event log behind a cursor."""
