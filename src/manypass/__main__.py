"""`python -m manypass` is the command line."""

from manypass.cli import main

main()
