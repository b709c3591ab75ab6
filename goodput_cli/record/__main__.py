"""`python -m goodput_record TYPE`."""

import sys

from .command import main

sys.exit(main())
