"""The build backend: that of setuptools, which asks for Numba only where a wheel's kernels are compiled."""

from __future__ import annotations

import os
import shutil
import sysconfig
from functools import cache
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403

NEEDED = [
    "lark>=1.2,<2",
    "numpy>=1.26",
    "platformdirs>=4",
    "safetensors>=0.4.3",
]
"""What every installation needs."""

_INTEL_MAC = "sys_platform == 'darwin' and platform_machine == 'x86_64'"
_OTHER = "sys_platform != 'darwin' or platform_machine != 'x86_64'"

NUMBA = [f"numba>=0.61; {_OTHER}", f"numba>=0.61,<0.63; {_INTEL_MAC}"]
"""What it needs besides, where no kernels were compiled."""

COMPILING = [*NEEDED, f"numba==0.68.*; {_OTHER}", f"numba==0.62.*; {_INTEL_MAC}"]
"""What compiling the kernels needs. Numba is pinned, since `numba.pycc` is deprecated.

Numba 0.62 is the last that has wheels for Macs with Intel's processors.
"""

PURE_VARIABLE = "MASKWRIGHT_PURE"
_EDITABLE_VARIABLE = "MASKWRIGHT_BUILDS_EDITABLE"


@cache
def compiles_ahead() -> bool:
    """Whether wheels get machine code: there is a C compiler, and nobody asked for pure wheels."""
    if os.environ.get(PURE_VARIABLE, "0") not in ("", "0"):
        return False
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    return shutil.which(compiler.split()[0]) is not None


def is_editable() -> bool:
    """Whether an installation is made that goes on reading the checkout."""
    return _EDITABLE_VARIABLE in os.environ


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """What building a wheel needs besides setuptools."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *(COMPILING if compiles_ahead() else [])]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    """What an editable installation needs besides setuptools."""
    os.environ[_EDITABLE_VARIABLE] = "1"
    return build_meta.get_requires_for_build_editable(config_settings)


def prepare_metadata_for_build_editable(metadata_directory: str, config_settings: Any = None) -> str:
    """The metadata of an editable installation, which needs Numba."""
    os.environ[_EDITABLE_VARIABLE] = "1"
    return build_meta.prepare_metadata_for_build_editable(metadata_directory, config_settings)


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """The wheel of an editable installation."""
    os.environ[_EDITABLE_VARIABLE] = "1"
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
