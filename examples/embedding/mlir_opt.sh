#!/bin/sh
# An mlir-opt script that gained pipelining: our passes are six more names in a pipeline
# that is MLIR's own from there on. Prints the kernel in the llvm and nvvm dialects.
#
#   examples/embedding/mlir_opt.sh [FILE.mlir]
#
# ALCOP_OPT is the program to use, if alcop-opt is not on PATH.
set -eu

input=${1:-$(dirname "$0")/tiled_matmul.mlir}

# Folded constants and shared expressions, as planning compares addresses.
tidy="canonicalize,cse"

# Three slots for each shared buffer: a tile is asked for two steps before its use.
pipeline="alcop-plan-pipelines{target=sm_80 stages=3,1}
  ,alcop-multi-buffer
  ,alcop-expand-pipelines
  ,$tidy
  ,alcop-place-waits
  ,alcop-unroll-steady-state
  ,$tidy"

# What the script did before there were any of ours.
lower="convert-nvgpu-to-nvvm
  ,convert-vector-to-scf
  ,convert-scf-to-cf
  ,expand-strided-metadata
  ,lower-affine
  ,convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=true}
  ,convert-vector-to-llvm
  ,convert-nvvm-to-llvm
  ,$tidy
  ,reconcile-unrealized-casts"

exec "${ALCOP_OPT:-alcop-opt}" "$input" \
  --pass-pipeline="builtin.module(gpu.module(gpu.func($tidy,$pipeline),$lower))"
