"""What host functions do: which kernels they launch, and with which arguments."""
