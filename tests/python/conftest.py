"""Makes the oracle's module, which is built for tests only, importable beside the installed package."""

import os
import sys
from pathlib import Path

BUILD = Path(os.environ.get("STICTION_BUILD", Path(__file__).resolve().parents[2] / "build"))

sys.path.append(str(BUILD / "python"))  # at the end: an installed stiction comes first
