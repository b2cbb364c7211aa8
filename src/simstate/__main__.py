"""The `simstate` script, and `python -m simstate`: the command line."""

import sys
from io import TextIOWrapper


def entry() -> None:
    """Run the command line, and exit with its code."""
    try:
        from simstate.cli import main
    except KeyboardInterrupt:  # `main` handles it otherwise
        sys.stderr.write("error: interrupted before the command finished.\n")
        sys.exit(130)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # not closed, nor replaced
            stream.reconfigure(errors="replace")  # for encodings without "²" or "→"
    sys.exit(main())


if __name__ == "__main__":
    entry()
