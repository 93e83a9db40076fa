"""For the documentation's build: a warning fails it under --quiet, too, which silences what --strict counts."""

import logging


def on_startup(command: str, dirty: bool) -> None:
    log = logging.getLogger("mkdocs")
    log.setLevel(min(log.level, logging.WARNING))
