"""The map console: its page, and what it asks for beyond the API that everybody uses."""
