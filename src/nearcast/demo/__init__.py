"""A server with something going on: a simulated city that anybody can look at."""
