// Kernels of thread block clusters; what each computes is in cuda_programs.py.
#include <cooperative_groups.h>
#define KERNEL(blocks) extern "C" __global__ void __cluster_dims__(blocks, 1, 1)
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
namespace cg = cooperative_groups;

KERNEL(2) cluster_exchange(const int *x, int *y, int n) {  // each block has the other's
  __shared__ int s[128];
  auto cluster = cg::this_cluster();
  s[threadIdx.x] = x[INDEX];
  cluster.sync();
  y[INDEX] = *cluster.map_shared_rank(&s[threadIdx.x], cluster.block_rank() ^ 1);
  cluster.sync();
}
KERNEL(4) cluster_sums(const int *x, int *y, int n) {  // by one block for all
  __shared__ int sum;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) sum = 0;
  cluster.sync();
  atomicAdd(cluster.map_shared_rank(&sum, 0), x[INDEX]);
  cluster.sync();
  if (cluster.block_rank() == 0 && threadIdx.x == 0) y[blockIdx.x / 4] = sum;
}
KERNEL(4) cluster_histogram(const unsigned *x, unsigned *y, int n) {
  __shared__ unsigned bins[8];  // 32 of all blocks
  auto cluster = cg::this_cluster();
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  cluster.sync();
  unsigned bin = x[INDEX] & 31;
  atomicAdd(cluster.map_shared_rank(&bins[bin & 7], bin >> 3), 1);
  cluster.sync();
  if (threadIdx.x < 8)
    atomicAdd(&y[cluster.block_rank() * 8 + threadIdx.x], bins[threadIdx.x]);
}
KERNEL(3) cluster_ring(const int *x, int *y, int n) {  // values go round, one at a time
  __shared__ int s[2][128];
  auto cluster = cg::this_cluster();
  int rank = cluster.block_rank(), next = (rank + 1) % 3, t = threadIdx.x, sum = 0;
  s[0][t] = x[INDEX];
  cluster.sync();
  for (int k = 0; k < 3; k++) {
    int mine = s[k & 1][t];
    sum += (k + 1) * mine;
    cluster.map_shared_rank(&s[(k + 1) & 1][0], next)[t] = mine;
    cluster.sync();
  }
  y[INDEX] = sum;
}
KERNEL(2) cluster_scan(const int *x, int *y, int n) {  // of 256 numbers, by two blocks
  __shared__ int s[128];
  auto cluster = cg::this_cluster();
  int t = threadIdx.x;
  s[t] = x[INDEX];
  __syncthreads();
  for (int step = 1; step < 128; step *= 2) {
    int before = t >= step ? s[t - step] : 0;
    __syncthreads();
    s[t] += before;
    __syncthreads();
  }
  cluster.sync();
  int rank = cluster.block_rank();
  y[INDEX] = s[t] + (rank ? *cluster.map_shared_rank(&s[127], 0) : 0);
  cluster.sync();
}
