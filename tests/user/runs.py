"""`stiction train`: stopped by Ctrl-C and resumed it ends where the uninterrupted run does; mistakes are told."""

import json
import signal
import subprocess
import time
from pathlib import Path

SMALL = ["--threads", "1", "--num-envs", "64", "--evaluate", "2", "--no-video"]
ENDS = ["--samples", "30000"]


def stiction(*words, **options):
    return subprocess.run(["stiction", *words], capture_output=True, text=True, **options)


def curve(run):
    """Without the clock's."""
    points = json.loads(Path(run, "curve.json").read_text())
    return [{name: value for name, value in point.items() if "seconds" not in name} for point in points]


whole = stiction("train", "CartPoleSwingUp", *SMALL, *ENDS, "--run-dir", "whole")
assert whole.returncode == 0, whole.stderr
assert {"checkpoint.pt", "best.pt", "policy.onnx", "policy.json"} <= {path.name for path in Path("whole").iterdir()}

begun = ["stiction", "train", "CartPoleSwingUp", *SMALL, *ENDS, "--run-dir", "parts"]
process = subprocess.Popen(begun, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
while process.poll() is None and not Path("parts/run.json").exists():
    time.sleep(0.02)
process.send_signal(signal.SIGINT)
told = process.communicate()[0]
assert process.returncode == 130 and "Traceback" not in told, told
part = curve("parts")
assert part == curve("whole")[: len(part)] and len(part) < len(curve("whole"))
resumed = stiction("train", "--resume", "parts")  # to the samples of the first call, by its options
assert resumed.returncode == 0, resumed.stderr
assert curve("parts") == curve("whole")
calls = json.loads(Path("parts/run.json").read_text())["calls"]
assert [call["arguments"]["samples"] for call in calls] == [30000, 30000]
assert [call["arguments"]["threads"] for call in calls] == [1, 1]

for words, text in (
    (["CartPoleSwingUp", "--run-dir", "whole"], "has a run already"),
    (["--resume", "whole", "--seed", "3"], "as it was: seed is 0 there, not 3"),
    (["CartPoleSwingUp", "--samples", "-5"], "--samples is -5, expected more than 0"),
    (["CartPoleSwingUp", "--seed", "-1"], "--seed is -1, expected 0 to"),
    (["CartPolSwing"], "did you mean CartPoleSwingUp"),
):
    refused = stiction("train", *words)
    assert refused.returncode == 1 and text in refused.stderr, refused.stderr
