"""Registers the environments with Gymnasium, whichever of the two packages is imported first.

Gymnasium has no plugins since 1.0: an id is known once somebody has registered it. Importing Gymnasium here would cost
every user of `Simulation` a quarter of a second, so a finder waits until somebody else imports it.
"""

import sys
from importlib import import_module


def register_when_imported() -> None:
    """Now, if gymnasium is there, else at the end of its import. Again is harmless."""
    if sys.modules.get("gymnasium") is not None:
        _register()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _register() -> None:
    import_module(f"{__package__}.registration").register_envs()


class _Finder:
    """Finds gymnasium where the others do, with a loader that registers in the end."""

    def find_spec(self, name, path=None, target=None):
        if name != "gymnasium":
            return None
        for finder in sys.meta_path:
            spec = None if finder is self or not hasattr(finder, "find_spec") else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self)
                return spec
        return None


class _Loader:
    def __init__(self, loader, finder: _Finder):
        self._loader, self._finder = loader, finder

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module) -> None:
        module.__spec__.loader = module.__loader__ = self._loader  # what asks for resources finds the real one
        self._loader.exec_module(module)
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        _register()
