"""The command line: one verb per file, `main` puts them together.

A command module imports only typer at its top; what it works with is imported when it runs, so that help comes at once. Results
go to standard output, progress and remarks to standard error. A `NearcastError` becomes one line and exit code 2.
"""
