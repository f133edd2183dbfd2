// The loop as a pipeline by the latency of loads.
module attributes {transform.with_named_sequence} {

transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %outer = transform.structured.match ops{["scf.for"]} in %root
      : (!transform.any_op) -> !transform.any_op
  %loop = transform.cast %outer : !transform.any_op to !transform.op<"scf.for">
  %piped = transform.loop.pipeline %loop {iteration_interval = 1, read_latency = 3}
      : (!transform.op<"scf.for">) -> !transform.any_op
  transform.yield
}

}
