"""Messages of the window in lists by keyword, long ones in blocks of neighbours, searched from the most promising block on."""
