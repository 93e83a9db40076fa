"""A robot of one's own: MJCF, trained by one command, played, filmed, its policy run in MuJoCo itself."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

LEG = """<body name="{0}_thigh" pos="{1} {2} 0"><joint name="{0}_hip" axis="1 0 0" range="-0.6 0.6"/>
  <joint name="{0}_swing" axis="0 1 0" range="-1.2 1.8"/>
  <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.02" mass="0.8"/>
  <body pos="0 0 -0.2"><joint name="{0}_knee" axis="0 1 0" range="-2.4 -0.2"/>
    <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.015" mass="0.2"/>
    <geom name="{0}" pos="0 0 -0.2" size="0.025" mass="0.05"/></body></body>"""
MOTOR = '<position joint="{}" kp="40" forcerange="-20 20"/>'
LEGS = {"FL": (0.2, 0.1), "FR": (0.2, -0.1), "RL": (-0.2, 0.1), "RR": (-0.2, -0.1)}
JOINTS = [f"{leg}_{joint}" for leg in LEGS for joint in ("hip", "swing", "knee")]
POSE = " ".join(["0 0.8 -1.6"] * 4)
ROBOT = f"""<mujoco><option timestep="0.005"/><default><joint damping="0.5" armature="0.01"/></default>
<worldbody><geom type="plane" size="0 0 1"/>
<body name="trunk" pos="0 0 0.31"><freejoint/>
<geom type="box" size="0.2 0.06 0.04" mass="5"/>
{"".join(LEG.format(leg, *at) for leg, at in LEGS.items())}</body></worldbody>
<actuator>{"".join(MOTOR.format(joint) for joint in JOINTS)}</actuator>
<keyframe><key name="home" qpos="0 0 0.31 1 0 0 0 {POSE}" ctrl="{POSE}"/></keyframe></mujoco>"""


def stiction(*words):
    done = subprocess.run(["stiction", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


Path("robot.xml").write_text(ROBOT)
Path("random.toml").write_text(
    '[[randomize]]\nname = "geom_friction"\nlow = 0.5\nhigh = 1.2\noperation = "set"\ncolumns = 0\n'
)
robot = ["QuadrupedVelocity", "--model", "robot.xml", "--names", "feet=FL,FR,RL,RR", "--task", "tracking_sigma=0.3"]
small = ["--randomize", "random.toml", "--threads", "1", "--num-envs", "64", "--evaluate", "2", "--no-video"]
stiction("train", *robot, *small, "--samples", "4000", "--run-dir", "run")
interface = json.loads(Path("run/policy.json").read_text())
assert interface["task_parameters"]["tracking_sigma"] == 0.3
assert [action["name"] for action in interface["actions"]] == [f"joint_target/{joint}" for joint in JOINTS]

Path("kept").mkdir()
Path("robot.xml").rename("kept/robot.xml")  # the checkpoint has the robot
Path("random.toml").unlink()
stiction("play", "run", "--episodes", "2", "--threads", "1", "--video", "run.mp4", "--seconds", "0.2")
assert Path("run.mp4").stat().st_size > 1000
stiction("play", "run/best.pt", "--episodes", "2", "--threads", "1", "--onnx", "best.onnx")
assert json.loads(Path("best.json").read_text()) == interface and Path("best.onnx").stat().st_size > 1000
stiction("bench", "run", "--num-envs", "64", "--rounds", "1")

shutil.copy(Path(sys.argv[1]) / "examples" / "walk_in_mujoco.py", ".")
walk = [sys.executable, "walk_in_mujoco.py", "kept/robot.xml", "run", "--seconds", "1"]
done = subprocess.run(walk, capture_output=True, text=True)
assert "velocity error" in done.stdout, done.stderr

Path("neighbour.py").write_text("HEIGHT = 2.0\n")
Path("mine.py").write_text("""import neighbour, stiction
class High(stiction.Task):
    base = "stiction/QuadrupedVelocity-v0"
    def reward(self, action):
        return {"height": neighbour.HEIGHT * self.sim.qpos[:, 2]}
""")
words = ["mine:High", "--model", "kept/robot.xml", *robot[3:5], "--minutes", "1e-9", "--no-onnx", "--run-dir", "high"]
stiction("train", *words, "--threads", "1", "--num-envs", "8", "--evaluate", "0", "--no-video")
