"""MuJoCo's numbers, which the fields of a model have too (host/model/model.h)."""

FREE, BALL, SLIDE, HINGE = range(4)  # jnt_type
PLANE, HFIELD, MESH, SDF = 0, 1, 7, 8  # geom_type
SIZES = {
    2: 1,
    3: 2,
    4: 3,
    5: 2,
    6: 3,
}  # of a sphere, capsule, ellipsoid, cylinder, box: how many numbers of geom_size it has
TRN_JOINT, TRN_JOINT_IN_PARENT, TRN_TENDON = 0, 1, 3  # actuator_trntype
EQ_CONNECT, EQ_WELD, EQ_JOINT, EQ_TENDON = range(4)  # eq_type
NO_GRAVITY, NO_CLAMP, NO_ACTUATION = 1 << 7, 1 << 8, 1 << 11  # disableflags
