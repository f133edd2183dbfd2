// C = A B of any m, by n and k that are multiples of 8, with CUTLASS's multistage
// mainloop: A by rows, B by columns (nt) or by rows (nn). f16, sums in f32.
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/kernel/default_gemm.h>
#include <cutlass/gemm/threadblock/threadblock_swizzle.h>

using Half = cutlass::half_t;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
using Tile = cutlass::gemm::GemmShape<64, 64, 32>;
using Order = cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>;
using Epilogue = cutlass::epilogue::thread::LinearCombination<float, 4, float, float>;

template <typename LayoutB, int Stages>
using Gemm = typename cutlass::gemm::kernel::DefaultGemm<
    Half, Row, 8, Half, LayoutB, 8, float, Row, float, cutlass::arch::OpClassTensorOp,
    cutlass::arch::Sm80, Tile, cutlass::gemm::GemmShape<32, 32, 32>,
    cutlass::gemm::GemmShape<16, 8, 16>, Epilogue, Order, Stages, false,
    cutlass::arch::OpMultiplyAdd>::GemmKernel;

template <typename Kernel, typename LayoutB>
__device__ void run(Half *a, Half *b, float *c, int m, int n, int k, int step_b) {
  extern __shared__ __align__(16) char shared[];
  cutlass::gemm::GemmCoord problem(m, n, k);
  auto tiles = Order().get_tiled_shape(problem, {Tile::kM, Tile::kN, Tile::kK}, 1);
  typename Kernel::Params params(problem, tiles, {a, Row(k)}, {b, LayoutB(step_b)},
                                 {c, Row(n)}, {c, Row(n)}, {1.0f, 0.0f});
  Kernel()(params, *reinterpret_cast<typename Kernel::SharedStorage *>(shared));
}

extern "C" __global__ void __launch_bounds__(128)
    multistage_nt(Half *a, Half *b, float *c, int m, int n, int k) {
  run<Gemm<Column, 3>, Column>(a, b, c, m, n, k, k);
}

extern "C" __global__ void __launch_bounds__(128)
    multistage_nn(Half *a, Half *b, float *c, int m, int n, int k) {
  run<Gemm<Row, 4>, Row>(a, b, c, m, n, k, n);
}
