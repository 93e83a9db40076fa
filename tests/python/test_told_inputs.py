"""What was taken without a word, and is told or refused."""

import pytest
from scenes import sliding_box
from stiction import Model, Simulation


def test_nothing_is_no_array():
    sim = Simulation(Model.from_mjcf(sliding_box()), 2)
    with pytest.raises(TypeError, match="qfrc_applied"):
        sim.qfrc_applied = None


def test_an_empty_source_is_told():
    for source in ("", " \n"):
        with pytest.raises(ValueError, match="empty string"):
            Model.from_mjcf(source)


def test_room_for_too_many_contacts_is_refused():
    with pytest.raises(ValueError, match="max_contacts is 1000000000, expected at most 1000000"):
        Simulation(Model.from_mjcf(sliding_box()), max_contacts=10**9)


def test_limits_in_no_order_are_reported():
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    joint = (
        '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><limit lower="1" upper="-1" effort="1"/>'
    )
    urdf = f'<robot name="r"><link name="a"/><link name="b">{inertial}</link>{joint}</joint></robot>'
    assert any("'j': 1 to -1 are in no order" in line for line in Model.from_urdf(urdf).import_report)
