"""Arrays by their addresses, for kernels that are called so often that passing arrays costs.

PERF: an array that Python passes to compiled code costs some 40 ns, whatever it is used for; an
array of the addresses of six costs that once.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from maskwright.analysis.arrays import Int32


def int32_at(address: int, n: int) -> Int32:
    """The n int32 at an address, as an array. It does not keep them alive: whoever calls does."""
    import ctypes

    return np.ctypeslib.as_array((ctypes.c_int32 * n).from_address(int(address)))


@functools.cache
def teach_numba() -> None:
    """Tell Numba what `int32_at` is in compiled code: an array whose references nobody counts."""
    from numba import types
    from numba.core import cgutils
    from numba.extending import lower_builtin, type_callable
    from numba.np import arrayobj

    found = types.Array(types.int32, 1, "C")
    size = np.dtype(np.int32).itemsize

    def type_of(context: Any) -> Any:
        return lambda address, n: found

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, n = arguments
        array = made(context, builder)
        parts = {
            "data": builder.inttoptr(address, array.data.type),
            "shape": packed(builder, [n]),
            "strides": packed(builder, [context.get_constant(types.intp, size)]),
            "itemsize": context.get_constant(types.intp, size),
        }
        populated(array, **parts, meminfo=None)
        return array._getvalue()

    made: Any = arrayobj.make_array(found)  # type: ignore[no-untyped-call]
    populated: Any = arrayobj.populate_array
    packed: Any = cgutils.pack_array
    typed: Any = type_callable
    lowered: Any = lower_builtin
    typed(int32_at)(type_of)
    lowered(int32_at, types.int64, types.int64)(generate)
