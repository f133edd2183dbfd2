// D = A B, 256 cubed, by CUTLASS's kernels for sm_90a: a warp copies by tensor maps, warp
// groups multiply. TILE_M, TILE_N, MAINLOOP, EPILOGUE and CLUSTER choose which. The program is not
// for a GPU: it prints how the kernel is launched. Parameters are made by CUTLASS, with
// addresses of no memory, and tensor maps that hold their number.
#include <cstdio>
#include <cstring>
#include <cute/tensor.hpp>
#include <cutlass/device_kernel.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/kernel_hardware_info.hpp>
#include <cutlass/util/packed_stride.hpp>

using Half = cutlass::half_t;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
using Block = cute::Shape<cute::Int<TILE_M>, cute::Int<TILE_N>, cute::Int<64>>;
using Cluster = cute::Shape<cute::Int<CLUSTER>, cute::_1, cute::_1>;

using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Block, Cluster,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, Row, 4, float,
    Row, 4, cutlass::epilogue::EPILOGUE>::CollectiveOp;
using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, Row, 8, Half, Column, 8,
    float, Block, Cluster, cutlass::gemm::collective::StageCount<3>,
    cutlass::gemm::MAINLOOP>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>,
                                                    Mainloop, Epilogue>;

extern "C" __global__ void
#if CLUSTER > 1
__cluster_dims__(CLUSTER)
#endif
__launch_bounds__(Kernel::MaxThreadsPerBlock, Kernel::MinBlocksPerMultiprocessor)
    gemm(__grid_constant__ typename Kernel::Params const params) {
  extern __shared__ __align__(1024) char shared[];
  Kernel{}(params, shared);
}

template <typename Number>
void print_list(const char *name, const Number *values, unsigned count) {
  std::printf(", \"%s\": [", name);
  for (unsigned i = 0; i < count; ++i)
    std::printf("%s%llu", i ? ", " : "", (unsigned long long)values[i]);
  std::printf("]");
}

// In place of the driver's.
extern "C" CUresult cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType, cuuint32_t rank, void *address,
    const cuuint64_t *sizes, const cuuint64_t *, const cuuint32_t *box,
    const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  static int count = 0;
  std::memset(map, 0xA0 + count, sizeof(*map));
  std::printf("%s{\"address\": %llu, \"swizzle\": %d", count++ ? ", " : "",
              (unsigned long long)address, int(swizzle));
  print_list("sizes", sizes, rank);
  print_list("box", box, rank);
  std::printf("}");
  return CUDA_SUCCESS;
}

constexpr int size = 256;

int main() {
  auto address = [](long long i) { return (void *)(0x7000000000 + i * 0x10000000); };
  auto stride = [](auto none) {
    return cutlass::make_cute_packed_stride(none, {size, size, 1});
  };
  static typename Kernel::Params params;
  typename Kernel::Arguments arguments{
      cutlass::gemm::GemmUniversalMode::kGemm,
      {size, size, size, 1},
      {(Half *)address(0), stride(typename Kernel::StrideA{}), (Half *)address(1),
       stride(typename Kernel::StrideB{})},
      {{1.0f, 0.0f}, nullptr, {}, (float *)address(2),
       stride(typename Kernel::StrideD{})},
      cutlass::KernelHardwareInfo{0, 2}};
  std::printf("{\"maps\": [");
  params = Kernel::to_underlying_arguments(arguments, nullptr);
  auto grid = Kernel::get_grid_shape(params);
  std::printf("], \"grid\": [%u, %u, %u], \"threads\": %u, \"shared\": %d", grid.x,
              grid.y, grid.z, Kernel::get_block_shape().x,
              int(Kernel::SharedStorageSize));
  std::printf(", \"parameters\": \"");
  auto *bytes = reinterpret_cast<unsigned char *>(&params);
  for (size_t i = 0; i < sizeof(params); ++i) std::printf("%02x", bytes[i]);
  std::printf("\"}\n");
}
