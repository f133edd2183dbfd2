// A schedule: upstream's transform ops tile a matmul, ours pipeline it and lower it to
// tensor cores. From this folder:
//
//   alcop-opt matmul.mlir \
//     --transform-preload-library='transform-library-paths=tile_and_pipeline.mlir' \
//     --transform-interpreter

module attributes {transform.with_named_sequence} {

transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %product = transform.structured.match ops{["linalg.matmul"]} in %root
      : (!transform.any_op) -> !transform.any_op

  // A block computes 64 x 64 of C, in K steps of 32. The operands of a step are
  // copied to shared memory: two copies, and the barriers that they need.
  %of_block, %blocks = transform.structured.tile_using_forall %product
      tile_sizes [64, 64] (mapping = [#gpu.block<y>, #gpu.block<x>])
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %of_step, %steps = transform.structured.tile_using_for %of_block
      tile_sizes [0, 0, 32]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %staged = transform.structured.promote %of_step {
      operands_to_promote = [0, 1],
      mapping = [#gpu.memory_space<workgroup>],
      use_full_tile_buffers = [true, true]}
      : (!transform.any_op) -> !transform.any_op

  // A warp computes 32 x 32 of it, 16 of K at a time, as one contraction of vectors.
  %of_warp, %warps = transform.structured.tile_using_forall %staged
      tile_sizes [32, 32]
      (mapping = [#gpu.warp<linear_dim_1>, #gpu.warp<linear_dim_0>])
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %of_fragment, %fragments = transform.structured.tile_using_for %of_warp
      tile_sizes [0, 0, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.structured.vectorize %of_fragment {create_named_contraction}
      : !transform.any_op

  // The loops over blocks and warps become a launch of 4 warps a block.
  %function = transform.structured.match ops{["func.func"]} in %root
      : (!transform.any_op) -> !transform.any_op
  %launch = transform.gpu.map_forall_to_blocks %function generate_gpu_launch
      : (!transform.any_op) -> !transform.any_op
  %mapped = transform.gpu.map_nested_forall_to_threads %launch
      block_dims = [128, 1, 1]
      : (!transform.any_op) -> !transform.any_op
  transform.apply_patterns to %mapped {
    transform.apply_patterns.canonicalization
    transform.apply_patterns.memref.fold_memref_alias_ops
  } : !transform.any_op
  transform.apply_cse to %mapped : !transform.any_op

  // C stays in registers along K.
  %parent = transform.structured.match ops{["func.func"]} in %root
      : (!transform.any_op) -> !transform.any_op
  %hoisted = transform.structured.hoist_redundant_vector_transfers %parent
      : (!transform.any_op) -> !transform.any_op

  // Our ops from here on: 3 slots in shared memory, 2 of fragments in registers.
  %kernel = transform.structured.match ops{["gpu.launch"]} in %hoisted
      : (!transform.any_op) -> !transform.any_op
  %piped = "alcop_transform.pipeline"(%kernel) {target = "sm_80", stages = [3, 2]}
      : (!transform.any_op) -> !transform.any_op
  %spread = "alcop_transform.distribute_copies"(%piped)
      : (!transform.any_op) -> !transform.any_op
  %mma = "alcop_transform.lower_mma"(%spread)
      : (!transform.any_op) -> !transform.any_op
  transform.apply_patterns to %mma {
    transform.apply_patterns.memref.fold_memref_alias_ops
  } : !transform.any_op
  %swizzled = "alcop_transform.swizzle_shared"(%mma)
      : (!transform.any_op) -> !transform.any_op
  %unrolled = "alcop_transform.unroll_steady_state"(%swizzled)
      : (!transform.any_op) -> !transform.any_op
  transform.apply_patterns to %unrolled {
    transform.apply_patterns.canonicalization
  } : !transform.any_op
  transform.apply_cse to %unrolled : !transform.any_op
  transform.yield
}

}
