// Kernels as people write them, for nvcc; what each computes is in cuda_programs.py.
#include <cooperative_groups.h>
#include <cstdio>
#include <cuda_pipeline.h>
#define KERNEL extern "C" __global__ void
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

template <class T> __device__ void axpy(const T *x, T *y, int n) {
  int i = INDEX;
  if (i < n) y[i] = T(3) * x[i] + y[i];
}
KERNEL axpy_i(const int *x, int *y, int n) { axpy(x, y, n); }
KERNEL axpy_f(const float *x, float *y, int n) { axpy(x, y, n); }
KERNEL axpy_d(const double *x, double *y, int n) { axpy(x, y, n); }

template <class T> __device__ void transpose(const T *x, T *y) {
  __shared__ T tile[32][33];
  int tx = threadIdx.x % 32, ty = threadIdx.x / 32, b = blockIdx.x * 1024;
  for (int r = ty; r < 32; r += 4) tile[r][tx] = x[b + r * 32 + tx];
  __syncthreads();
  for (int r = ty; r < 32; r += 4) y[b + r * 32 + tx] = tile[tx][r];
}
KERNEL transpose_h(const unsigned short *x, unsigned short *y, int n) { transpose(x, y); }
KERNEL transpose_f(const float *x, float *y, int n) { transpose(x, y); }
KERNEL transpose_d(const double *x, double *y, int n) { transpose(x, y); }

template <class T> __device__ void tree(const T *x, T *y) {
  __shared__ T s[128];
  int t = threadIdx.x;
  s[t] = x[INDEX];
  __syncthreads();
  for (int d = 64; d > 0; d /= 2) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = s[0];
}
KERNEL tree_i(const int *x, int *y, int n) { tree(x, y); }
KERNEL tree_f(const float *x, float *y, int n) { tree(x, y); }
KERNEL tree_d(const double *x, double *y, int n) { tree(x, y); }

template <class T> __device__ void product(const T *x, T *y) {
  __shared__ T a[16][16], b[16][16];
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  int row = blockIdx.x / 2 * 16 + ty, column = blockIdx.x % 2 * 16 + tx;
  T sum = 0;
  for (int k = 0; k < 32; k += 16) {
    a[ty][tx] = x[row * 32 + k + tx];
    b[ty][tx] = x[(k + ty) * 32 + column];
    __syncthreads();
    for (int i = 0; i < 16; i++) sum += a[ty][i] * b[i][tx];
    __syncthreads();
  }
  y[row * 32 + column] = sum;
}
KERNEL product_i(const int *x, int *y, int n) { product(x, y); }
KERNEL product_f(const float *x, float *y, int n) { product(x, y); }
KERNEL product_d(const double *x, double *y, int n) { product(x, y); }

KERNEL histogram(const int *x, int *y, int n) {
  __shared__ int h[16];
  if (threadIdx.x < 16) h[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&h[x[INDEX] & 15], 1);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&y[threadIdx.x], h[threadIdx.x]);
}
KERNEL any_negative(const int *x, int *y, int n) {  // all write the same value
  __shared__ int found;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  if (x[INDEX] < 0) found = 1;
  __syncthreads();
  y[INDEX] = found;
}
KERNEL stencil(const int *x, int *y, int n) {
  __shared__ int s[130];
  int t = threadIdx.x, i = INDEX;
  s[t + 1] = x[i];
  if (t == 0) s[0] = i ? x[i - 1] : 0;
  if (t == 127) s[129] = i + 1 < n ? x[i + 1] : 0;
  __syncthreads();
  y[i] = s[t] - 2 * s[t + 1] + s[t + 2];
}
KERNEL scan(const int *x, int *y, int n) {
  __shared__ int s[2][128];
  int t = threadIdx.x, from = 0;
  s[0][t] = x[INDEX];
  __syncthreads();
  for (int d = 1; d < 128; d *= 2, from ^= 1) {
    s[from ^ 1][t] = t >= d ? s[from][t] + s[from][t - d] : s[from][t];
    __syncthreads();
  }
  y[INDEX] = s[from][t];
}
KERNEL bitonic(const int *x, int *y, int n) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = x[INDEX];
  for (int k = 2; k <= 128; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) {
      __syncthreads();
      int other = t ^ j;
      if (other > t && ((t & k) == 0) == (s[t] > s[other])) {
        int old = s[t];
        s[t] = s[other];
        s[other] = old;
      }
    }
  __syncthreads();
  y[INDEX] = s[t];
}
KERNEL warp_sums(const int *x, int *y, int n) {
  int v = x[INDEX];
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  y[INDEX] = v;
}
KERNEL compact(const int *x, int *y, int n) {  // of each warp, the odd ones first
  int lane = threadIdx.x % 32, v = x[INDEX];
  unsigned odd = __ballot_sync(~0u, v & 1), below = (1u << lane) - 1;
  int at = v & 1 ? __popc(odd & below) : __popc(odd) + __popc(~odd & below);
  y[INDEX - lane + at] = v;
}
KERNEL collatz(const int *x, int *y, int n) {
  unsigned v = INDEX + 1;
  int steps = 0;
  for (; v != 1; steps++) v = v & 1 ? 3 * v + 1 : v / 2;
  y[INDEX] = steps;
}
KERNEL extremes(const int *x, int *y, int n) {
  atomicMin(&y[0], x[INDEX]);
  atomicMax(&y[1], x[INDEX]);
  atomicXor(&y[2], x[INDEX]);
}
KERNEL async_sums(const int *x, int *y, int n) {  // two stages of cp.async
  __shared__ int s[2][128];
  int t = threadIdx.x, sum = 0, other = (t + 37) % 128;
  const int *from = x + blockIdx.x * 512;
  __pipeline_memcpy_async(&s[0][t], from + t, 4);
  __pipeline_commit();
  for (int k = 0; k < 4; k++) {
    if (k + 1 < 4) __pipeline_memcpy_async(&s[(k + 1) % 2][t], from + (k + 1) * 128 + t, 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    sum += (k + 1) * s[k % 2][other];
    __syncthreads();
  }
  y[INDEX] = sum;
}
KERNEL reverse(const int *x, int *y, int n) {
  extern __shared__ int room[];
  room[threadIdx.x] = x[INDEX];
  __syncthreads();
  y[INDEX] = room[127 - threadIdx.x];
}
__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
KERNEL recursion(const int *x, int *y, int n) { y[INDEX] = fibonacci(x[INDEX] & 7); }
typedef int (*Function)(int);
__device__ __noinline__ int twice(int a) { return 2 * a; }
__device__ __noinline__ int square(int a) { return a * a; }
__device__ Function functions[2] = {twice, square};
KERNEL table(const int *x, int *y, int n) { y[INDEX] = functions[INDEX & 1](x[INDEX]); }
KERNEL lists(const int *x, int *y, int n) {
  int *mine = (int *)malloc(16);
  mine[3] = x[INDEX];
  y[INDEX] = mine[3] + 1;
  free(mine);
}
KERNEL on_stack(const int *x, int *y, int n) {
  int room[16];
  for (int i = 0; i < 16; i++) room[i] = x[(INDEX + i) % n];
  int sum = 0;
  for (int i = 0; i < 16; i++) sum += room[(x[INDEX] + i * i) & 15];
  y[INDEX] = sum;
}
KERNEL wide_division(const unsigned *x, unsigned *y, int n) {  // of 128 bits
  typedef unsigned __int128 Wide;
  Wide a = 0;
  for (int i = 0; i < 4; i++) a = a << 32 | x[(INDEX + i) % n];
  Wide b = (Wide)x[(INDEX + 5) % n] << (threadIdx.x & 63) | 1;
  Wide quotient = a / b, rest = a % b;
  for (int i = 0; i < 4; i++) {
    y[8 * INDEX + i] = (unsigned)(quotient >> 32 * i);
    y[8 * INDEX + 4 + i] = (unsigned)(rest >> 32 * i);
  }
}
KERNEL grid_sums(const int *x, int *y, int n) {  // twice round the grid
  auto grid = cooperative_groups::this_grid();
  int i = INDEX, all = gridDim.x * blockDim.x;
  y[i] = x[i];
  grid.sync();
  int next = y[(i + 128) % all];
  grid.sync();
  y[i] += next;
}
