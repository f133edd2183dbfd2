// The copy of A's tile over 128 threads.
module attributes {transform.with_named_sequence} {

transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %copies = transform.structured.match ops{["linalg.copy"]} in %root
      : (!transform.any_op) -> !transform.any_op
  %a, %b = transform.split_handle %copies
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %threads, %part = transform.structured.gpu.map_copy_to_threads %a
      total_num_threads = 128 desired_bit_alignment = 128
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}

}
