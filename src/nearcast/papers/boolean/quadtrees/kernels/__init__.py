"""The loops of the two quadtrees and what they share."""
