"""Every subscription is looked at for every message."""
