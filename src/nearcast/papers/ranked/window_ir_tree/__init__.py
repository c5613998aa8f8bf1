"""The messages of the window in trees of boxes, each box with the words that are in it."""
