"""Safe regions: how far a subscriber may travel before it must report its position."""
