"""A simulated GPU to judge choosers by, which none of them has seen.

It shares no code with the analytical model, nor with the device called `simulated`, and
takes no number from them: nothing of `alcop_mlir` is imported here, and numbers are in
`machines.py` with their sources. A kernel is described in its own words (`Kernel`).

    machines.py   what was measured of A100 and H100
    kernel.py     what runs; its registers, and how many blocks an SM holds
    copies.py     instructions, cache lines and sectors of the copies of a tile
    memory.py     which blocks run together, and what they miss in L2
    warps.py      an SM, cycle by cycle: warps that issue cp.async, ldmatrix and mma
    roles.py      an SM where TMA copies and warpgroups multiply by wgmma
    device.py     a launch: waves of blocks, the last of them, parts of K

    device.seconds(kernel, machines.A100)

It is frozen, so that figures of different days compare: `test_yardstick.py` holds its
digest. What is changed is a new version (`VERSION`), with figures of its own. None of
its numbers was fitted to times of kernels.
"""

VERSION = 2
