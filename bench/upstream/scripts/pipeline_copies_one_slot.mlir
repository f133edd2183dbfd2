// pipeline_copies.mlir without slots.
module attributes {transform.with_named_sequence} {

transform.named_sequence @__transform_main(%root: !transform.any_op) {
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
