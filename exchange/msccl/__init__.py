"""MSCCL algorithms (XML): written from schedules, checked whoever made them, and read as schedules.

Three runtimes read the format, each with rules of its own: NCCL with MSCCL (microsoft/msccl), its executor
(Azure/msccl-executor-nccl) and RCCL (ROCm/rccl); see :mod:`.dialects`. A file says for every GPU which thread blocks it
has, and for every thread block which GPU it sends to, which it receives from, and its steps in order.
"""
