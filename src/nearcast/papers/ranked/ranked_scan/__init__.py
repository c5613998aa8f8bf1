"""Every subscription is scored for every message."""
