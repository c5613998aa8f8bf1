"""No structure at all: every clause is tested against every message."""
