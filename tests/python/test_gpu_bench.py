"""``python -m bench.gpu`` on the emulated device: what a GPU's first minutes run has run before."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import is_emulated
from stiction import Status

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.gpu import __main__ as bench  # noqa: E402

pytestmark = pytest.mark.skipif(not is_emulated(), reason="STICTION_CUDA is not EMULATED")
STAGES = ["find", "assemble", "solve", "judge", "improve", "settle", "recover"]


def measured(monkeypatch, tmp_path, what, *arguments):
    """Settled for 0.6 s, in which an Ant has come to stand."""
    output = tmp_path / "report.json"
    few = ["--batch", "40", "--agree", "40", "--settle", "60", "--steps", "10", "--rounds", "2"]
    monkeypatch.setattr(sys, "argv", ["bench.gpu", what, *few, *arguments, "--output", str(output)])
    bench.main()
    report = json.loads(output.read_text())
    assert report["facts"]["cuda"]["devices"]
    return report["results"]


def test_agreement_is_that_of_single_precision(monkeypatch, tmp_path):
    (ant,) = measured(monkeypatch, tmp_path, "agreement", "--models", "ant")
    assert ant["from_the_cpu"]["largest"] < 1e-4 and ant["repeats_bit_for_bit"]
    assert 0 < ant["from_double"]["p50"] <= ant["from_double"]["p99"] <= ant["from_double"]["largest"] < 1e-2


def test_stages_are_timed_on_the_device(monkeypatch, tmp_path):
    (ant,) = measured(monkeypatch, tmp_path, "stages", "--models", "ant")
    assert list(ant["ms"]) == STAGES and all(ms > 0 for ms in ant["ms"].values())
    assert ant["contacts"] > 1 and ant["r_con_over_V"]["p99"] < 1e-3
    np.testing.assert_allclose(ant["steps_per_second"], 40 / (1e-3 * sum(ant["ms"].values())))


def test_rates_come_with_their_certificate(monkeypatch, tmp_path):
    (ant,) = measured(monkeypatch, tmp_path, "rates", "--models", "ant")
    rate = ant["steps_per_second"]
    assert 0 < rate["least"] <= rate["median"] <= rate["most"]
    assert ant["bytes_per_environment"] > 1000 and ant["status_bits"] & ~int(Status.FALLBACK) == 0


def test_environments_take_tensors(monkeypatch, tmp_path):
    pytest.importorskip("torch")
    monkeypatch.setattr(bench, "TASKS", ("stiction/Ant-v0",))
    (ant,) = measured(monkeypatch, tmp_path, "environments")
    assert ant["control_steps_per_second"]["least"] > 0
