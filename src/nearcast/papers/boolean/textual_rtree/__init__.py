"""R-trees whose nodes know keywords: all of them (R^t), one per clause (R^t+) or one per clause and level (R^t++)."""
