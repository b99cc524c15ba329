"""Execution plans of MSCCL++ (JSON): writer from schedules, and checker of plans from any source.

A plan lists for every GPU its thread blocks, their channels and remote buffers, and their operations in order. Unlike
in MSCCL, data is written into the memory of another GPU, or read from it, and signals are separate. The rules were read
from the sources of the executor, microsoft/mscclpp 1f5f065 (``src/core/executor/execution_plan.cc``, ``executor.cc``,
``src/core/include/execution_common.hpp`` and ``execution_kernel.hpp``).
"""
