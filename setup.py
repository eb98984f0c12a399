"""What pyproject.toml cannot say: whether a wheel has its kernels compiled, and whether it needs Numba.

Where there is a C compiler, `pip install .` and `python -m build` compile the kernels that Python calls (scripts/compile_kernels.py): the
wheel is for one platform and one Python, and needs no Numba. Where there is none, or MASKWRIGHT_PURE=1 is set, it is for all, and Numba
compiles at the first call. In a checkout that is installed with `pip install -e` Numba does so too, unless `make kernels` has compiled.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "scripts"))

from build_backend import NEEDED, NUMBA, compiles_ahead, is_editable  # noqa: E402


class CompilingBuild(build_py):
    """Copies the modules, and compiles their kernels beside the copies."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode and compiles_ahead():
            folder = os.path.abspath(self.build_lib)
            script = str(ROOT / "scripts" / "compile_kernels.py")
            # in front, since pip names there what it has installed for the build
            path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
            with tempfile.TemporaryDirectory() as kept:  # what Numba keeps is nothing for a wheel
                environment = os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": kept}
                subprocess.run([sys.executable, script, "--all"], env=environment, cwd=folder, check=True)
            if not list(Path(folder).rglob("_compiled_*")):
                sys.exit("the kernels could not be compiled (see above); MASKWRIGHT_PURE=1 builds a wheel without them")


class PlatformDistribution(Distribution):
    """One whose wheel is for one platform, if it has machine code."""

    def has_ext_modules(self) -> bool:
        return compiles_ahead() and not is_editable()


def settings() -> dict[str, Any]:
    is_platform = compiles_ahead() and not is_editable()
    return {
        "cmdclass": {"build_py": CompilingBuild},
        "distclass": PlatformDistribution,
        "install_requires": NEEDED if is_platform else [*NEEDED, *NUMBA],
    }


setup(**settings())
