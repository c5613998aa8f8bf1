"""What was measured as pages, a table of every value, and figures."""
