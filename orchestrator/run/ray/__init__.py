"""The engine `ray_tune`: detached slot actors train, and Ray Tune's trials show what they report."""

import os

# Read when Ray is imported. Without it a call after the shutdown, such as the clean-up of a Tuner in its thread, would
# connect to another cluster of this machine, or start one.
os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
