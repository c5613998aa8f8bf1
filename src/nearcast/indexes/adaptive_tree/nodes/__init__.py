"""The making of single nodes: leaves, and children on the pile."""
