"""What memory on a GPU tells other libraries: addresses, shapes, owners; and the capsules themselves. Without a GPU."""

import gc
import weakref

import numpy as np
import pytest
from conftest import tensor_of
from scenes import sliding_box
from stiction import Model, Simulation, _core
from stiction.device_array import DeviceArray


@pytest.fixture
def sim():
    return Simulation(Model.from_mjcf(sliding_box()), 3, device="cpu")


class Exporter:
    """An object whose DLPack capsule says: on the CPU."""

    def __init__(self, array, versioned):
        self.array, self.versioned = array, versioned

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return _core.dlpack_capsule(self.array, 1, 0, self.versioned)


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8, bool])
def test_a_capsule_is_the_arrays_memory(dtype, versioned):
    array = np.arange(24).astype(dtype).reshape(2, 3, 4)
    for part in (array, array[:, ::2], array.transpose(2, 0, 1), array[:0]):
        seen = np.from_dlpack(Exporter(part, versioned))
        assert seen.dtype == part.dtype
        np.testing.assert_array_equal(seen, part)
        assert part.size == 0 or seen.__array_interface__["data"][0] == part.__array_interface__["data"][0]


@pytest.mark.parametrize("versioned", [False, True])
def test_a_capsule_keeps_its_array_and_lets_it_go(versioned):
    class Kept(np.ndarray):
        pass

    array = np.zeros(5).view(Kept)
    alive = weakref.ref(array)
    capsule = _core.dlpack_capsule(array, 1, 0, versioned)
    seen = np.from_dlpack(Exporter(array, versioned))
    del array
    gc.collect()
    assert alive() is not None
    del capsule
    gc.collect()
    assert alive() is not None and seen.sum() == 0
    del seen
    gc.collect()
    assert alive() is None


def test_capsules_cross_to_torch():
    torch = pytest.importorskip("torch")
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = torch.from_dlpack(Exporter(array, False))
    tensor[1, 2] = 9
    assert array[1, 2] == 9


def test_there_is_no_capsule_of_text():
    with pytest.raises(BufferError, match="no type for 'U'"):
        _core.dlpack_capsule(np.array(["a"]), 1, 0, False)


def test_an_array_tells_cuda_libraries_where_it_is(sim):
    array = DeviceArray(sim.qpos, 0)
    told = array.__cuda_array_interface__
    assert told["data"] == (sim.qpos.__array_interface__["data"][0], False)
    assert (told["shape"], told["typestr"], told["version"]) == (sim.qpos.shape, "<f4", 3)
    assert (array.shape, array.dtype, array.address) == (sim.qpos.shape, np.float32, told["data"][0])
    assert array.__dlpack_device__() == (2, 0)


def test_a_capsule_on_cuda_names_its_device(sim):
    capsule = DeviceArray(sim.qpos, 3).__dlpack__()
    tensor = tensor_of(capsule)
    assert (tensor.device_type, tensor.device_id, tensor.ndim, tensor.code, tensor.bits) == (2, 3, 2, 2, 32)
    assert tensor.data == sim.qpos.__array_interface__["data"][0]
    assert (tensor.shape[0], tensor.shape[1], tensor.strides[0], tensor.strides[1]) == (3, 7, 7, 1)


def test_what_dlpack_cannot_promise_is_refused(sim):
    array = DeviceArray(sim.qpos, 0)
    with pytest.raises(ValueError, match="stream is 0"):
        array.__dlpack__(stream=0)
    with pytest.raises(BufferError, match="not on"):
        array.__dlpack__(dl_device=(1, 0))
    with pytest.raises(BufferError, match="copy"):
        array.__dlpack__(copy=True)
    array = DeviceArray(sim.xpos, 0)
    with pytest.raises(BufferError, match="read-only"):
        array.__dlpack__()
    assert array.__cuda_array_interface__["data"][1]
    assert array.__dlpack__(max_version=(1, 0)) is not None
