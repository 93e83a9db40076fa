"""What the built-in tasks reward, how their episodes end and begin: for their pages and `stiction list TASK`.

Formulas are Python over a task's parameters, the terms of its observation and of its reports; a test evaluates them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType

_NOTHING = MappingProxyType({})


@dataclass(frozen=True)
class TaskText:
    """Of one task. ``reward``: a formula for each term; ``terminated``: one, or None where episodes end by time alone.

    ``where``: names that these use, as formulas; ``words``: names that they use and no formula has. ``begins``,
    ``meanwhile``: how an episode starts, and what happens in it. ``curve``: of `bench.learning`.
    """

    summary: str
    source: str
    reward: dict[str, str]
    terminated: str | None
    begins: str
    where: dict[str, str] = field(default_factory=lambda: _NOTHING)
    words: dict[str, str] = field(default_factory=lambda: _NOTHING)
    meanwhile: str = ""
    curve: str | None = None


_GYMNASIUM = (
    "Gymnasium's {} (v5), its names and defaults; contact is rigid and obeys Coulomb's law, positions are of the "
    "present state."
)
_CONTROL = "-ctrl_cost_weight * sum(a**2)"
_ALIVE = "terminate_when_unhealthy and not healthy"
_NOISE = "`qpos0` + U(±`reset_noise_scale`), velocities {}."

_PLANAR = {
    "forward": "forward_reward_weight * x_velocity",
    "survive": "healthy_reward * healthy",
    "ctrl": _CONTROL,
}
_UPRIGHT = (
    "healthy_z_range[0] < joint_position.root_z < healthy_z_range[1] and healthy_angle_range[0] < "
    "joint_position.root_y < healthy_angle_range[1]"
)

_CARTPOLE = {
    "source": "The DeepMind Control Suite's cartpole (`dm_control/suite/cartpole.py`); the rail's ends are rigid.",
    "reward": {"smooth": "upright * centred * small_control * small_velocity"},
    "where": {
        "upright": "(1 + cos.hinge) / 2",
        "centred": "(1 + 0.1**((joint_position.slider / centred_margin) ** 2)) / 2",
        "small_control": "(4 + max(1 - (a[0] / control_margin) ** 2, 0)) / 5",
        "small_velocity": "(1 + 0.1**((joint_velocity.hinge / velocity_margin) ** 2)) / 2",
    },
    "terminated": None,
}

_VELOCITY = {
    "source": "Terms, weights and rates of Isaac Lab's flat-ground tasks and of legged_gym (Rudin et al., CoRL "
    "2021), on any robot. Without noise on observations; a yaw rate is commanded, not a heading.",
    "reward": {
        "linear_tracking": "dt * linear_tracking_weight * exp(-((linear_velocity.x - command.x) ** 2 + "
        "(linear_velocity.y - command.y) ** 2) / tracking_sigma**2)",
        "yaw_tracking": "dt * yaw_tracking_weight * exp(-((angular_velocity.z - command.yaw) ** 2) / "
        "tracking_sigma**2)",
        "vertical_velocity": "-dt * vertical_velocity_weight * linear_velocity.z**2",
        "roll_pitch_rate": "-dt * roll_pitch_rate_weight * (angular_velocity.x**2 + angular_velocity.y**2)",
        "tilt": "-dt * tilt_weight * (gravity.x**2 + gravity.y**2)",
        "torque": "-dt * torque_weight * sum(torque**2)",
        "acceleration": "-dt * acceleration_weight * sum(((joint_velocity - before.joint_velocity) / dt) ** 2)",
        "action_rate": "-dt * action_rate_weight * sum((last_action - before.last_action) ** 2)",
        "air_time": "dt * air_time_weight * moving * sum(landed * (air_time - wanted_air_time))",
        "undesired_contact": "-dt * undesired_contact_weight * undesired",
        "single_stance": "dt * single_stance_weight * moving * (standing == 1) * min(stance_time, wanted_air_time)",
        "joint_deviation": "-dt * joint_deviation_weight * sum(abs(joint_position))",
        "fall": "-dt * fall_weight * terminated",
    },
    "where": {"moving": "command.x**2 + command.y**2 > 0"},
    "words": {
        "torque": "of the servos at the end of the step, N m",
        "landed": "of each foot: 1 where it touches for the first time since the air; a foot touches above "
        "`touch_force`",
        "air_time": "of each foot: how long it had been in the air, s",
        "standing": "how many feet touch",
        "stance_time": "the shortest time that a foot has been down or up, s",
        "undesired": "how many of the undesired bodies touch something",
        "trunk_force": "contact force on the bodies of the trunk, N",
    },
    "terminated": "trunk_force > trunk_force_limit",
    "begins": "Standing pose `start_clearance` above the ground, any heading; joints + U(`joint_noise`), the trunk's "
    "velocity U(`start_velocity`).",
    "meanwhile": "Commands are drawn from `command_x`, `command_y`, `command_yaw` every `command_period` s; slower "
    "ones than `smallest_command` are to stand. Every `push_interval` s the trunk's velocity changes by "
    "U(±`push_velocity`). The curriculum: ranges of commands grow from the part `curriculum_start` to the whole, by "
    "a tenth whenever an episode reached 0.8 of the most that linear tracking gives, in each environment. Actions "
    "are targets: standing pose + `action_scale` times the action, rad.",
}

_ARM_COSTS = {
    "action_rate": "-dt * action_rate_weight * sum((last_action - before.last_action) ** 2)",
    "joint_velocity": "-dt * joint_velocity_weight * sum(joint_velocity**2)",
}
_ARM_ACTS = (
    "Joint targets are the home pose + `action_scale` times the action. The gripper goes from `gripper_closed` to "
    "`gripper_open`, parts of its range: to either end where `binary_gripper`. A finger touches above `touch_force`."
)
_REACH = "dt * reach_weight * (1 - tanh(grasp_distance / reach_scale))"
_LIFTED = "cube_height > lift_height and grasp_distance < lift_reach"

TEXTS: dict[str, TaskText] = {
    "stiction/Ant-v0": TaskText(
        summary="Run forward, along x, without falling or tipping over.",
        source=_GYMNASIUM.format("Ant"),
        reward={
            "forward": "forward_reward_weight * x_velocity",
            "survive": "healthy_reward * healthy",
            "ctrl": _CONTROL,
            "contact": "-contact_cost_weight * sum(contact_wrench**2)",
        },
        where={"healthy": "healthy_z_range[0] <= base_position.z <= healthy_z_range[1]"},
        terminated=_ALIVE,
        begins=_NOISE.format("`reset_noise_scale` N(0, 1)"),
        meanwhile="Contact wrenches are observed within `contact_force_range`.",
        curve="ant",
    ),
    "stiction/HalfCheetah-v0": TaskText(
        summary="Run forward, along x, in a plane.",
        source=_GYMNASIUM.format("HalfCheetah"),
        reward={"forward": "forward_reward_weight * x_velocity", "ctrl": _CONTROL},
        terminated=None,
        begins=_NOISE.format("`reset_noise_scale` N(0, 1)"),
        curve="halfcheetah",
    ),
    "stiction/Hopper-v0": TaskText(
        summary="Hop forward on one leg, in a plane.",
        source=_GYMNASIUM.format("Hopper"),
        reward=_PLANAR,
        where={
            "healthy": _UPRIGHT + " and all(healthy_state_range[0] < x < healthy_state_range[1] for x in "
            "(*joint_position[1:], *joint_velocity))"
        },
        terminated=_ALIVE,
        begins=_NOISE.format("U(±`reset_noise_scale`)"),
        meanwhile="Velocities are observed within ±10; `healthy` takes them as they are.",
        curve="hopper",
    ),
    "stiction/Walker2d-v0": TaskText(
        summary="Walk forward on two legs, in a plane.",
        source=_GYMNASIUM.format("Walker2d"),
        reward=_PLANAR,
        where={"healthy": _UPRIGHT},
        terminated=_ALIVE,
        begins=_NOISE.format("U(±`reset_noise_scale`)"),
        curve="walker2d",
    ),
    "stiction/Humanoid-v0": TaskText(
        summary="Run forward, along x, without falling.",
        source=_GYMNASIUM.format("Humanoid") + " `x_velocity` is the centre of mass's.",
        reward={
            "forward": "forward_reward_weight * x_velocity",
            "survive": "healthy_reward * healthy",
            "ctrl": _CONTROL,
            "contact": "-clip(contact_cost_weight * sum(contact_wrench**2), *contact_cost_range)",
        },
        where={"healthy": "healthy_z_range[0] < base_position.z < healthy_z_range[1]"},
        terminated=_ALIVE,
        begins=_NOISE.format("U(±`reset_noise_scale`)"),
        curve="humanoid",
    ),
    "stiction/CartPoleBalance-v0": TaskText(
        summary="Keep a pole upright on a cart, in the middle of its rail.",
        begins="Position U(±`position_noise`), angle U(±`angle_noise`), velocities `velocity_noise` N(0, 1).",
        curve="cartpolebalance",
        **_CARTPOLE,
    ),
    "stiction/CartPoleSwingUp-v0": TaskText(
        summary="Swing a pole up on a cart, then keep it upright in the middle of its rail.",
        begins="The pole hangs: position `position_noise` N(0, 1), angle pi + `angle_noise` N(0, 1), velocities "
        "`velocity_noise` N(0, 1).",
        curve="cartpoleswingup",
        **_CARTPOLE,
    ),
    "stiction/QuadrupedVelocity-v0": TaskText(
        summary="Walk on four legs as commanded, on flat ground, under pushes. On one's own robot by `model=` and "
        "`names=`.",
        curve="quadrupedvelocity",
        **_VELOCITY,
    ),
    "stiction/HumanoidVelocity-v0": TaskText(
        summary="Walk on two legs as commanded, forward and turning. On one's own robot by `model=` and `names=`.",
        curve="humanoidvelocity",
        **_VELOCITY,
    ),
    "stiction/ArmLift-v0": TaskText(
        summary="An arm with a gripper takes a cube from the table and holds it where it is told. On one's own arm "
        "by `model=` and `names=`.",
        source="Terms, weights, ranges and rates of Isaac Lab's lift task (Isaac-Lift-Cube-Franka); one goal an "
        "episode, a cube that was thrown is not lifted.",
        reward={
            "reach": _REACH,
            "lift": "dt * lift_weight * is_lifted",
            "goal": "dt * goal_weight * is_lifted * (1 - tanh(goal_distance / goal_scale))",
            "goal_fine": "dt * goal_fine_weight * is_lifted * (1 - tanh(goal_distance / goal_fine_scale))",
            **_ARM_COSTS,
        },
        where={"is_lifted": _LIFTED, "is_success": "is_lifted and goal_distance < success_distance"},
        terminated="cube_height < -fall_depth",
        begins="Home pose, the arm's joints + U(`joint_noise`); the cube within `cube_x`, `cube_y` of its place, "
        "turned by U(`cube_yaw`); a goal within `goal_x`, `goal_y`, `goal_z` of that place.",
        meanwhile=_ARM_ACTS,
        curve="armlift",
    ),
    "stiction/ArmStack-v0": TaskText(
        summary="An arm with a gripper puts one cube upon another and lets go. On one's own arm by `model=` and "
        "`names=`.",
        source="Stages of IsaacGymEnvs' FrankaCubeStack; rewards of all stages add up, the last centimetres and "
        "letting go are rewarded too, a cube is placed when the fingers have let go and it rests.",
        reward={
            "reach": _REACH,
            "lift": "dt * lift_weight * is_lifted",
            "over": "dt * over_weight * is_lifted * (1 - tanh(place_distance / over_scale))",
            "over_fine": "dt * over_fine_weight * is_lifted * (1 - tanh(place_distance / over_fine_scale))",
            "let_go": "dt * let_go_weight * is_on_top * (1 + clip(last_action[-1] / 3, -1, 1)) / 2",
            "placed": "dt * placed_weight * is_success",
            **_ARM_COSTS,
        },
        where={
            "is_lifted": _LIFTED,
            "is_on_top": "norm(cube_to_place[:2]) < place_tolerance and abs(cube_to_place.z) < height_tolerance",
            "is_success": "is_on_top and touching == 0 and norm(cube_linear_velocity) < rest_speed",
        },
        words={"lowest_cube": "how far the lower cube is above its place in the home pose, m"},
        terminated="lowest_cube < -fall_depth",
        begins="Home pose, the arm's joints + U(`joint_noise`); the cubes within `cube_x`, `cube_y` of their places, "
        "turned by U(`cube_yaw`), `separation` or more between their centres.",
        meanwhile=_ARM_ACTS,
        curve="armstack",
    ),
    "stiction/HandReorient-v0": TaskText(
        summary="A hand of four fingers turns a cube that lies in it to one orientation after the other. On one's "
        "own hand by `model=` and `names=`.",
        source="Terms and rates of Isaac Lab's Isaac-Repose-Cube-Allegro-Direct; an action of 0 is the home pose, "
        "goals are turns about the vertical, reached at 0.4 rad. Turns about any axis, at that task's 0.2 rad and its "
        "weight of the distance: `task={'goal_tilt': pi / 2, 'goal_turn': (0, pi), 'success_angle': 0.2, "
        "'distance_weight': 10}`.",
        reward={
            "rotation": "rotation_weight / (angle + rotation_offset)",
            "distance": "-distance_weight * distance",
            "action": "-action_weight * sum(a**2)",
            "goal": "goal_weight * is_success",
            "fall": "-fall_weight * terminated",
        },
        where={"is_success": "angle < success_angle"},
        terminated="distance >= fall_distance",
        begins="Home pose, joints + U(`joint_noise`); the cube `start_clearance` above its place, moved by "
        "U(±`cube_noise`) in x and y, on any of its faces, turned by U(`cube_yaw`).",
        meanwhile="A goal is the one before it, the first the cube, turned by U(`goal_turn`), either way, about an "
        "axis within `goal_tilt` of the vertical; when it is reached the next follows. Actions of -1 and 1 are the "
        "joints' limits.",
        curve="handreorient",
    ),
}
