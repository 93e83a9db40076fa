"""Pictures of a simulation and of environments, with their goal, and a video that plays in a notebook."""

from pathlib import Path

import numpy as np
import stiction

envs = stiction.make_vec("stiction/ArmLift-v0", 2, render_mode="rgb_array", width=320, height=240)
envs.reset(seed=0)
with_goal = envs.picture(0)
bare = envs.simulation.render(0, width=320, height=240)
assert with_goal.shape == bare.shape == (240, 320, 3)
assert (with_goal != bare).any() and with_goal.std() > 10
assert len(envs.markers(0)) > 0

video = stiction.record(envs, lambda observations: np.zeros(envs.action_space.shape, np.float32), seconds=0.4)
video.save("lift.mp4")
assert Path("lift.mp4").stat().st_size > 1000 and "<video" in video._repr_html_()
