"""`python -m manypass` is the command line."""

from manypass.cli import main

if __name__ == "__main__":  # the explorer's workers import this module again
    main()
