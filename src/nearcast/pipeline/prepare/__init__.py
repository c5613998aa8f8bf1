"""Step 1: clean messages, split texts, count words."""
