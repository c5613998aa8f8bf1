"""The definition of the answers, in plain Python: one oracle for each kind of subscription."""
