"""No structure at all: every clause against every living message."""
