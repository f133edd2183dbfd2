// Copies become asynchronous, and are waited for at once.
module attributes {transform.with_named_sequence} {

transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %launch = transform.structured.match ops{["gpu.launch"]} in %root
      : (!transform.any_op) -> !transform.any_op
  %grouped = transform.nvgpu.create_async_groups %launch {bypass_l1}
      : (!transform.any_op) -> !transform.any_op
  transform.yield
}

}
