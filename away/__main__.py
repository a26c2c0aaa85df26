"""`python -m away`."""

import sys

from away.command import main

sys.exit(main())
