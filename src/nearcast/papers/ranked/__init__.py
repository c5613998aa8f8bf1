"""The papers' ranked engine and its indexes."""
