"""The arrays that kernels take, as annotations: their elements, and how many dimensions they have.

All are C-contiguous. A type checker sees a NumPy array of these elements. `analysis.ahead` reads
the second part, which is Numba's own notation: `int32[:, ::1]` has two dimensions.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

Bool = Annotated[npt.NDArray[np.bool_], "boolean[::1]"]
Bool_2D = Annotated[npt.NDArray[np.bool_], "boolean[:, ::1]"]
Int8 = Annotated[npt.NDArray[np.int8], "int8[::1]"]
UInt8 = Annotated[npt.NDArray[np.uint8], "uint8[::1]"]
UInt8_2D = Annotated[npt.NDArray[np.uint8], "uint8[:, ::1]"]
Int32 = Annotated[npt.NDArray[np.int32], "int32[::1]"]
Int32_2D = Annotated[npt.NDArray[np.int32], "int32[:, ::1]"]
Int32_3D = Annotated[npt.NDArray[np.int32], "int32[:, :, ::1]"]
Int32_4D = Annotated[npt.NDArray[np.int32], "int32[:, :, :, ::1]"]
UInt32 = Annotated[npt.NDArray[np.uint32], "uint32[::1]"]
UInt32_2D = Annotated[npt.NDArray[np.uint32], "uint32[:, ::1]"]
Int64 = Annotated[npt.NDArray[np.int64], "int64[::1]"]
Int64_2D = Annotated[npt.NDArray[np.int64], "int64[:, ::1]"]
UInt64 = Annotated[npt.NDArray[np.uint64], "uint64[::1]"]
UInt64_2D = Annotated[npt.NDArray[np.uint64], "uint64[:, ::1]"]
Integers = Annotated[npt.NDArray[Any], "int16[::1]", "int32[::1]", "int64[::1]"]
"""Of any of these types: a kernel is compiled for each."""
