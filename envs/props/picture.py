"""envs/props/props.png: every prop of this folder, as it stands.

python envs/props/picture.py [--output FILE]
"""

import argparse
from pathlib import Path

from stiction.batch_renderer import choose_gl

choose_gl()

import mujoco  # noqa: E402
import numpy as np  # noqa: E402
from PIL import Image, ImageDraw, ImageFont  # noqa: E402

FOLDER = Path(__file__).parent
SIZE, COLUMNS, FINER = 170, 5, 3
SCENE = """
<mujoco><include file="{path}"/>
<visual><headlight ambient=".4 .4 .4" diffuse=".3 .3 .3" specular="0 0 0"/>
  <quality shadowsize="4096"/><global offwidth="800" offheight="800"/><map znear=".01" shadowclip="5"/></visual>
<asset><material name="ground" rgba=".88 .89 .9 1" specular="0" reflectance="0"/></asset>
<worldbody><light pos="-.5 -.4 1" dir=".5 .4 -1" diffuse=".5 .5 .5" castshadow="true" directional="true"/>
  <geom type="plane" size="3 3 1" material="ground"/></worldbody></mujoco>"""


def panel(path: Path) -> Image.Image:
    model = mujoco.MjModel.from_xml_string(SCENE.format(path=path.resolve()))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    vertices = []
    for geom in np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_MESH):
        mesh = model.geom_dataid[geom]
        own = model.mesh_vert[model.mesh_vertadr[mesh] :][: model.mesh_vertnum[mesh]]
        vertices.append(own @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom])
    vertices = np.vstack(vertices)
    middle = (vertices.min(0) + vertices.max(0)) / 2
    camera = mujoco.MjvCamera()
    camera.lookat[:], camera.azimuth, camera.elevation = middle, 125, -32
    camera.distance = 2.95 * np.linalg.norm(vertices - middle, axis=1).max()
    model.stat.extent, model.stat.center[:] = camera.distance / 2, middle
    with mujoco.Renderer(model, FINER * SIZE, FINER * SIZE) as renderer:
        renderer.update_scene(data, camera)
        picture = Image.fromarray(renderer.render()).resize((SIZE, SIZE), Image.Resampling.LANCZOS)
    text = f"{path.stem}, {1e3 * model.body_mass.sum():.0f} g"
    ImageDraw.Draw(picture).text((8, 6), text, fill=(15, 20, 30), font=ImageFont.load_default(12))
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=FOLDER / "props.png")
    arguments = parser.parse_args()
    props = sorted(FOLDER.glob("*.xml"))
    sheet = Image.new("RGB", (COLUMNS * SIZE, -(-len(props) // COLUMNS) * SIZE), (236, 239, 243))
    for number, path in enumerate(props):
        sheet.paste(panel(path), (number % COLUMNS * SIZE, number // COLUMNS * SIZE))
    sheet.save(arguments.output, optimize=True)
    print(f"{arguments.output}: {len(props)} props")


if __name__ == "__main__":
    main()
