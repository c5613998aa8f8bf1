"""The messages of each keyword, the frequent ones in blocks of neighbours: searched from the most promising block down."""
