"""Safe regions: how far a subscriber may travel before it has to report its position."""
