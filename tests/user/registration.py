"""Ids are known to Gymnasium, whichever package is imported first, with and without the prefix."""

import subprocess
import sys

SHORT, LONG = "stiction/Ant-v0", "stiction:stiction/Ant-v0"
ORDERS = (
    ("import stiction, gymnasium as gym", SHORT, LONG),
    ("import stiction, gymnasium as gym", LONG, SHORT),
    ("import gymnasium as gym, stiction", SHORT, LONG),
    ("import gymnasium as gym", LONG, SHORT),
)

for imports, *ids in ORDERS:
    makes = [f"gym.make({env_id!r}).reset()\nenvs = gym.make_vec({env_id!r}, num_envs=3)" for env_id in ids]
    program = "\n".join([imports, *makes, "print(envs.reset()[0].shape)"])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "(3, 105)", (program, done.stdout, done.stderr)
