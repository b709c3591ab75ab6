"""`python -m tests.causes.wordings KIND`."""

import sys

from tests.causes.wordings import main

main(sys.argv[1])
