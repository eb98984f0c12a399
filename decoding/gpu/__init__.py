"""The engine on a device: experimental, not measured on a GPU.

In: a store. Out: texts in the slots of a device, and their masks there. Knows nothing of models.
"""

from maskwright.decoding.gpu.gpu import STATES, GpuBatch

__all__ = ["STATES", "GpuBatch"]
