"""`python -m voxframe.local`: the embedded service as a process of its own."""

import sys

from voxframe.local.start import main

sys.exit(main())
