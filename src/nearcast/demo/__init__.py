"""A demonstration: a server with a simulated city."""
