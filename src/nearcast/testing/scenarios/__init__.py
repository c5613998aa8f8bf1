"""Random worlds and lists of actions, run with an engine and with its oracle."""
