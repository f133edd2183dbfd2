// Block tiles, K steps, operands padded; A packed before the loop.
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
  %typed = transform.cast %pad : !transform.any_op to !transform.op<"tensor.pad">
  %packed = transform.structured.hoist_pad %typed by 1 loops
      : (!transform.op<"tensor.pad">) -> !transform.any_op
  transform.yield
}

}
