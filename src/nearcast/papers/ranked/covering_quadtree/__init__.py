"""Each subscription in cells that cover the plane, fine near it and coarse far away, with lists by cell and keyword."""
