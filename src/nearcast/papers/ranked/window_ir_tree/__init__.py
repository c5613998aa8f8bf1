"""Messages of the window in trees of boxes, each box with the words of its messages."""
