"""How dead clauses leave: lazily, some lists at each change."""
