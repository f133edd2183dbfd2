// Slots, asynchronous copies, and a pipeline of depth 3.
module attributes {transform.with_named_sequence} {

transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %buffers = transform.structured.match ops{["memref.alloc"]} in %root
      : (!transform.any_op) -> !transform.op<"memref.alloc">
  %slots = transform.memref.multibuffer %buffers {factor = 3, skip_analysis}
      : (!transform.op<"memref.alloc">) -> !transform.any_op
  // One access per copy, straight to the buffer: what the pipeliner recognises.
  %function = transform.structured.match ops{["func.func"]} in %root
      : (!transform.any_op) -> !transform.any_op
  transform.apply_patterns to %function {
    transform.apply_patterns.memref.fold_memref_alias_ops
    transform.apply_patterns.canonicalization
  } : !transform.any_op
  transform.apply_cse to %function : !transform.any_op
  %launch = transform.structured.match ops{["gpu.launch"]} in %root
      : (!transform.any_op) -> !transform.any_op
  %grouped = transform.nvgpu.create_async_groups %launch {bypass_l1}
      : (!transform.any_op) -> !transform.any_op
  %loop = transform.structured.match ops{["scf.for"]} in %root
      : (!transform.any_op) -> !transform.any_op
  %piped = transform.nvgpu.pipeline_shared_memory_copies failures(propagate)
      %loop {depth = 3} : (!transform.any_op) -> !transform.any_op
  transform.yield
}

}
