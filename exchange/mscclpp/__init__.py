"""Execution plans of MSCCL++ (JSON): written from schedules, and checked whoever made them.

A plan says for every GPU which thread blocks it has, which channels and remote buffers these use, and their operations in
order. Unlike MSCCL, data is written into the memory of another GPU, or read from it, and signals are apart from it. The
rules were read from the sources of the executor, microsoft/mscclpp 1f5f065 (``src/core/executor/execution_plan.cc``,
``executor.cc``, ``src/core/include/execution_common.hpp`` and ``execution_kernel.hpp``).
"""
