"""Lists by keyword, by how much a message can weigh at most, and by cell: of the circles from which floors are reached."""
