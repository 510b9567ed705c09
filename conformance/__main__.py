"""``python -m conformance`` is the command."""

import sys

from conformance.cli import main

sys.exit(main())
