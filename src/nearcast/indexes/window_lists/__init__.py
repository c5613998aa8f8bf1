"""The messages of each keyword, newest first."""
