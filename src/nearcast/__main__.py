"""`python -m nearcast`: the command line, where the console script is not on the path."""

from nearcast.cli.main import main

main()
