"""`python -m nearcast`: the command line, for machines without the console script on the path."""

from nearcast.cli.main import main

main()
