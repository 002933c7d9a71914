"""``python -m cudalint``."""

import sys

from cudalint.hosts.cli import main

if __name__ == "__main__":
    sys.exit(main())
