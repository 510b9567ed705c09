"""``python -m conformance`` is the command, and so is ``conformance``."""

import sys


def main() -> int:
    """Run the command; its imports take a while, in which Ctrl-C is answered as it is later."""
    try:
        from conformance import cli

        return cli.main()
    except KeyboardInterrupt:
        return 2


if __name__ == "__main__":
    sys.exit(main())
