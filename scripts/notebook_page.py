"""For the documentation's build: a page of every notebook, which it links to."""

import json
from pathlib import PurePosixPath

from mkdocs.structure.files import File


def page_of(notebook: dict, name: str) -> str:
    """Markdown: cells as they are, code in blocks, and below the title a link to the notebook."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    title, *rest = (f"```python\n{text}\n```" if kind == "code" else text for kind, text in cells)
    return "\n\n".join([title, f"[This page as a notebook]({name}) to run.", *rest]) + "\n"


def on_files(files, config, **kwargs):
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        path = PurePosixPath(notebook.src_uri)
        text = page_of(json.loads(notebook.content_string), path.name)
        files.append(File.generated(config, str(path.with_suffix(".md")), content=text))
    return files
