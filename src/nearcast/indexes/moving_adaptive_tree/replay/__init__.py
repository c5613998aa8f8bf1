"""Messages of a part of the tree that is built anew: taken out before, handed down again after."""
