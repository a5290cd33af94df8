"""`python -m voxframe` is the command `voxframe`."""

import sys

from voxframe.cli import main

sys.exit(main())
