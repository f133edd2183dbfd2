// y[i] = x[i] + x[i + 1], where each tile of 128 closes on itself, with a pipeline of
// two stages: the copy of the next tile is in flight while this one is summed. One block
// does `tiles` tiles.
//
//   nvcc -arch=sm_80 -ptx window_sum.cu -o window_sum.ptx
//   alcop-run window_sum.ptx --launch window_sum.json --profile --trace trace.json
//
// Without the second __syncthreads() the sums still come out right where warps run in
// step; the emulator reports the race (write-after-read).

#include <cuda_pipeline.h>

constexpr int kTile = 128;

extern "C" __global__ void window_sum(const float *x, float *y, int tiles) {
  __shared__ float slot[2][kTile];
  x += blockIdx.x * tiles * kTile;
  y += blockIdx.x * tiles * kTile;
  const int me = threadIdx.x;
  __pipeline_memcpy_async(&slot[0][me], x + me, sizeof(float));
  __pipeline_commit();
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles)
      __pipeline_memcpy_async(&slot[(tile + 1) % 2][me], x + (tile + 1) * kTile + me,
                              sizeof(float));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    const float *now = slot[tile % 2];
    y[tile * kTile + me] = now[me] + now[(me + 1) % kTile];
    __syncthreads();
  }
}
