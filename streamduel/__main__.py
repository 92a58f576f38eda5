"""`python -m streamduel` and the `streamduel` script."""

import sys

try:
    from streamduel.cli import main
except KeyboardInterrupt:  # Ctrl-C during the imports shows no traceback
    sys.exit(130)

if __name__ == "__main__":
    main()
