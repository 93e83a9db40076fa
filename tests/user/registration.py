"""Ids are known to Gymnasium, whichever package is imported first, with and without the prefix."""

import subprocess
import sys

IMPORTS = ("import stiction, gymnasium as gym", "import gymnasium as gym, stiction", "import gymnasium as gym")

for imports in IMPORTS:
    ids = ["stiction:stiction/Ant-v0", *(["stiction/Ant-v0"] if "stiction" in imports else [])]
    for env_id in (*ids, *reversed(ids)):
        program = (
            f"{imports}\ngym.make({env_id!r}).reset()\nprint(gym.make_vec({env_id!r}, num_envs=3).reset()[0].shape)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert done.stdout.strip() == "(3, 105)", (program, done.stdout, done.stderr)
