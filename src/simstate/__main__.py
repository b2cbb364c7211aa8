"""The `simstate` script, and `python -m simstate`: the command line."""

import sys


def entry() -> None:
    """Run the command line, and exit with its code."""
    try:
        from simstate.cli import main
    except KeyboardInterrupt:  # `main` handles it otherwise
        sys.stderr.write("error: interrupted before the command finished.\n")
        sys.exit(130)
    sys.exit(main())


if __name__ == "__main__":
    entry()
