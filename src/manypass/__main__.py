"""`python -m manypass` and `manypass` are the command line."""

import sys


def main() -> None:
    """Run one command; Ctrl-C while its modules load is no traceback either."""
    try:
        from manypass.cli import main as run
    except KeyboardInterrupt:
        print("manypass: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":  # the explorer's workers import this module again
    main()
