// Copies by the tensor memory accelerator.
module attributes {transform.with_named_sequence} {

transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %copies = transform.structured.match ops{["linalg.copy"]} in %root
      : (!transform.any_op) -> !transform.any_op
  transform.nvgpu.rewrite_copy_as_tma %copies : (!transform.any_op) -> ()
  transform.yield
}

}
