"""Execution of schedules with real data, one process for each rank.

:mod:`.program` lowers a schedule to the sends and receives of every process, :mod:`.values` has the data before and
after, :mod:`.player` plays a program over a transport: sockets between local processes (:mod:`.sockets`,
:mod:`.local`), also over the links of an emulated network (:mod:`.emulation`), or MPI (:mod:`.mpi`).
"""
