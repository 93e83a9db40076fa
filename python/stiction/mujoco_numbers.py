"""MuJoCo's numbers, which the fields of a model have too (host/model/model.h)."""

FREE, BALL, SLIDE, HINGE = range(4)  # jnt_type
PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH, SDF = range(9)  # geom_type
TRN_JOINT, TRN_JOINT_IN_PARENT, TRN_TENDON = 0, 1, 3  # actuator_trntype
EQ_CONNECT, EQ_WELD, EQ_JOINT, EQ_TENDON = range(4)  # eq_type
NO_GRAVITY, NO_CLAMP, NO_ACTUATION = 1 << 7, 1 << 8, 1 << 11  # disableflags
