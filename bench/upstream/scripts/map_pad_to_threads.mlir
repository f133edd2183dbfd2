// Block tiles, K steps; the copy of A's tile over 128 threads.
module attributes {transform.with_named_sequence} {

transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %matmul = transform.structured.match ops{["linalg.matmul"]} in %root
      : (!transform.any_op) -> !transform.any_op
  %tile, %blocks = transform.structured.tile_using_forall %matmul
      tile_sizes [128, 128] (mapping = [#gpu.block<y>, #gpu.block<x>])
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %step, %steps = transform.structured.tile_using_for %tile tile_sizes [0, 0, 32]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %padded, %pads, %copies = transform.structured.pad %step {
      padding_values = [0.0 : f16, 0.0 : f16, 0.0 : f32],
      padding_dimensions = [0, 1, 2], nofold_flags = [1, 1, 0], copy_back_op = "none"}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
  %pad = transform.get_producer_of_operand %padded[0]
      : (!transform.any_op) -> !transform.any_op
  %threads, %part = transform.structured.gpu.map_copy_to_threads %pad
      total_num_threads = 128 desired_bit_alignment = 128
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}

}
