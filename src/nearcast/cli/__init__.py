"""The command line: verbs by subject; `main` puts them together.

A module with verbs imports at its top what loads fast, and the rest inside the verbs, so that help is fast. Results go to
standard output, progress and remarks to standard error. A `NearcastError` becomes one line and exit code 2.
"""
