"""Loaded by the server process that forks the children of `audio.ChildAudio`. It ends when its parent ends.

Importing this module elsewhere would end that process with its parent, too.
"""

import os

import voxframe_engine.speech.audio  # noqa: F401 - loaded before the fork
from voxframe_engine.child_process import end_with_parent

end_with_parent(os.getppid())
