// The same, without the analysis.
module attributes {transform.with_named_sequence} {

transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %buffers = transform.structured.match ops{["memref.alloc"]} in %root
      : (!transform.any_op) -> !transform.op<"memref.alloc">
  %slots = transform.memref.multibuffer %buffers {factor = 3, skip_analysis}
      : (!transform.op<"memref.alloc">) -> !transform.any_op
  transform.yield
}

}
