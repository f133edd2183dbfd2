"""Names of the ops by which threads meet, and wait for asynchronous copies."""

BARRIER = "gpu.barrier"  # of all threads of a block
WARP_BARRIER = "nvvm.bar.warp.sync"
# Ops that order what threads write and read.
BARRIERS = (BARRIER, WARP_BARRIER)
GROUP, WAIT = "nvgpu.device_async_create_group", "nvgpu.device_async_wait"
SYNCHRONISATION = (BARRIER, GROUP, WAIT)
