"""`python -m tests.causes.stories [PART OF A NAME]`."""

import sys

from tests.causes.stories import main

if __name__ == "__main__":
    main(*sys.argv[1:2])
