// RUN: alcop-opt %s --alcop-plan-pipelines='stages=3,2' --split-input-file --verify-diagnostics

// Each refusal is a remark on the copy: rule, reason, remedy.

#ws = #gpu.address_space<workgroup>
func.func @rule_2_two_writers(%A: memref<64x512xf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %zero = arith.constant 0.0 : f16
  %a = memref.alloc() : memref<64x32xf16, #ws>
  scf.for %k = %c0 to %c512 step %c32 {
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    // expected-remark @+1 {{not pipelined (rule 2): its buffer is also written by 'memref.store'; fill the buffer by copies in the loop only}}
    memref.copy %tile, %a : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
    memref.store %zero, %a[%c0, %c0] : memref<64x32xf16, #ws>
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @rule_4_read_before(%A: memref<64x512xf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %a = memref.alloc() : memref<64x32xf16, #ws>
  scf.for %k = %c0 to %c512 step %c32 {
    %v = memref.load %a[%c0, %c0] : memref<64x32xf16, #ws>
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    // expected-remark @+1 {{not pipelined (rule 4): its buffer is read by 'memref.load' before the copy; copy before use in each iteration}}
    memref.copy %tile, %a : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @rule_4_read_after_loop(%A: memref<64x512xf16>) -> f16 {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %a = memref.alloc() : memref<64x32xf16, #ws>
  scf.for %k = %c0 to %c512 step %c32 {
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    // expected-remark @+1 {{not pipelined (rule 4): its buffer is read by 'memref.load' outside of the loop}}
    memref.copy %tile, %a : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
  }
  %v = memref.load %a[%c0, %c0] : memref<64x32xf16, #ws>
  return %v : f16
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @rule_4_unknown_use(%A: memref<64x512xf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %a = memref.alloc() : memref<64x32xf16, #ws>
  scf.for %k = %c0 to %c512 step %c32 {
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    // expected-remark @+1 {{not pipelined (rule 4): its buffer is used by 'func.call', whose effect is not known}}
    memref.copy %tile, %a : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
    func.call @opaque(%a) : (memref<64x32xf16, #ws>) -> ()
  }
  return
}
func.func private @opaque(memref<64x32xf16, #ws>)

// -----

// 3 slots of 64 KB are more than a block of sm_80 may have.
#ws = #gpu.address_space<workgroup>
func.func @rule_5_too_large(%A: memref<256x1024xf16>) {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c1024 = arith.constant 1024 : index
  %a = memref.alloc() : memref<256x128xf16, #ws>
  scf.for %k = %c0 to %c1024 step %c128 {
    %tile = memref.subview %A[0, %k] [256, 128] [1, 1] : memref<256x1024xf16> to memref<256x128xf16, strided<[1024, 1], offset: ?>>
    // expected-remark @+1 {{not pipelined (rule 5): 3 slots need 196608 bytes of shared memory, there are 166912; fewer stages or smaller tiles}}
    memref.copy %tile, %a : memref<256x128xf16, strided<[1024, 1], offset: ?>> to memref<256x128xf16, #ws>
    gpu.barrier
    %v = memref.load %a[%c0, %c0] : memref<256x128xf16, #ws>
    gpu.barrier
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @rule_6_source_written(%A: memref<64x512xf16>, %D: memref<64x512xf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %a = memref.alloc() : memref<64x32xf16, #ws>
  scf.for %k = %c0 to %c512 step %c32 {
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    // expected-remark @+1 {{not pipelined (rule 6): its source may be written by 'memref.store' in the loop; promise that arguments do not alias with assume-noalias-args=true, if so}}
    memref.copy %tile, %a : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
    %v = memref.load %a[%c0, %c0] : memref<64x32xf16, #ws>
    memref.store %v, %D[%c0, %k] : memref<64x512xf16>
  }
  return
}

// -----

// One array: a promise about others would not help.
#ws = #gpu.address_space<workgroup>
func.func @rule_6_in_place(%A: memref<64x512xf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %a = memref.alloc() : memref<64x32xf16, #ws>
  %flat = memref.collapse_shape %A [[0, 1]] : memref<64x512xf16> into memref<32768xf16>
  scf.for %k = %c0 to %c512 step %c32 {
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    // expected-remark @+1 {{not pipelined (rule 6): its source may be written by 'memref.store' in the loop; copy from memory that the loop does not write}}
    memref.copy %tile, %a : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
    %v = memref.load %a[%c0, %c0] : memref<64x32xf16, #ws>
    memref.store %v, %flat[%k] : memref<32768xf16>
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @rule_6_gather_written(%A: memref<512x32xf16> {llvm.noalias}, %rows: memref<16xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %a = memref.alloc() : memref<1x32xf16, #ws>
  scf.for %k = %c0 to %c16 step %c1 {
    %row = memref.load %rows[%k] : memref<16xindex>
    %tile = memref.subview %A[%row, 0] [1, 32] [1, 1] : memref<512x32xf16> to memref<1x32xf16, strided<[32, 1], offset: ?>>
    // expected-remark @+1 {{not pipelined (rule 6): its address depends on 'memref.load' of the same iteration; load it from memory that the loop does not write}}
    memref.copy %tile, %a : memref<1x32xf16, strided<[32, 1], offset: ?>> to memref<1x32xf16, #ws>
    memref.store %c0, %rows[%c1] : memref<16xindex>
    %v = memref.load %a[%c0, %c0] : memref<1x32xf16, #ws>
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @rule_6_gather_perhaps_written(%A: memref<512x32xf16> {llvm.noalias}, %rows: memref<16xindex>, %other: memref<16xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %a = memref.alloc() : memref<1x32xf16, #ws>
  scf.for %k = %c0 to %c16 step %c1 {
    %row = memref.load %rows[%k] : memref<16xindex>
    %tile = memref.subview %A[%row, 0] [1, 32] [1, 1] : memref<512x32xf16> to memref<1x32xf16, strided<[32, 1], offset: ?>>
    // expected-remark @+1 {{not pipelined (rule 6): its address depends on 'memref.load' of the same iteration; promise that arguments do not alias with assume-noalias-args=true, if so}}
    memref.copy %tile, %a : memref<1x32xf16, strided<[32, 1], offset: ?>> to memref<1x32xf16, #ws>
    memref.store %c0, %other[%k] : memref<16xindex>
    %v = memref.load %a[%c0, %c0] : memref<1x32xf16, #ws>
  }
  return
}

// -----

// Rows of an odd number of elements.
#ws = #gpu.address_space<workgroup>
func.func @rule_1_narrow_tile(%A: memref<64x511xf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c480 = arith.constant 480 : index
  %a = memref.alloc() : memref<64x32xf16, #ws>
  scf.for %k = %c0 to %c480 step %c32 {
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x511xf16> to memref<64x32xf16, strided<[511, 1], offset: ?>>
    // expected-remark @+1 {{not pipelined (rule 1): the rows of argument 1, memref<64x511xf16>, are known to be aligned to 2 bytes, 4 are needed: each thread copies element by element, and waits in each iteration; make rows a multiple of 16 bytes: of 8 elements, not 511}}
    memref.copy %tile, %a : memref<64x32xf16, strided<[511, 1], offset: ?>> to memref<64x32xf16, #ws>
    gpu.barrier
    %v = memref.load %a[%c0, %c0] : memref<64x32xf16, #ws>
    gpu.barrier
  }
  return
}

// -----

// The second copy wins, as long as they come in order.
#ws = #gpu.address_space<workgroup>
func.func @rule_2_the_same_elements(%A: memref<64x64xf32>, %B: memref<64x64xf32>, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %c64 step %c1 {
    %u = memref.load %A[%k, %t] : memref<64x64xf32>
    // expected-remark @+1 {{not pipelined (rule 2): another copy of the iteration may fill the same elements of its buffer; let the copies fill parts at constant distances from each other}}
    memref.store %u, %a[%t] : memref<64xf32, #ws>
    %v = memref.load %B[%k, %t] : memref<64x64xf32>
    // expected-remark @+1 {{not pipelined (rule 2): another copy of the iteration may fill the same elements}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%c0] : memref<64xf32, #ws>
    gpu.barrier
  }
  return
}

// -----

// Parts of one row: of eight elements each, eight apart.
#ws = #gpu.address_space<workgroup>
func.func @rule_2_other_elements(%A: memref<64x64xf16>, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %a = memref.alloc() : memref<64x16xf16, #ws>
  scf.for %k = %c0 to %c64 step %c1 {
    %u = vector.load %A[%k, %c0] : memref<64x64xf16>, vector<8xf16>
    vector.store %u, %a[%t, %c0] : memref<64x16xf16, #ws>, vector<8xf16>
    %v = vector.load %A[%k, %c8] : memref<64x64xf16>, vector<8xf16>
    vector.store %v, %a[%t, %c8] : memref<64x16xf16, #ws>, vector<8xf16>
    gpu.barrier
    %x = memref.load %a[%c0, %c0] : memref<64x16xf16, #ws>
    gpu.barrier
  }
  return
}

// -----

// What the user planned is not judged here, but its slots take up shared memory.
#ws = #gpu.address_space<workgroup>
func.func @rule_5_beside_a_given_plan(%A: memref<128x512xf16>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %a = memref.alloc() : memref<128x64xf16, #ws>
  %b = memref.alloc() : memref<128x64xf16, #ws>
  scf.for %k = %c0 to %c512 step %c64 {
    %tile = memref.subview %A[0, %k] [128, 64] [1, 1] : memref<128x512xf16> to memref<128x64xf16, strided<[512, 1], offset: ?>>
    memref.copy %tile, %a {alcop.pipeline = #alcop.pipeline<{shared = 8}>} : memref<128x64xf16, strided<[512, 1], offset: ?>> to memref<128x64xf16, #ws>
    gpu.barrier
    %v = memref.load %a[%c0, %c0] : memref<128x64xf16, #ws>
    gpu.barrier
  } {alcop.pipeline = #alcop.pipeline<{shared = 8}>}
  scf.for %k = %c0 to %c512 step %c64 {
    %tile = memref.subview %A[0, %k] [128, 64] [1, 1] : memref<128x512xf16> to memref<128x64xf16, strided<[512, 1], offset: ?>>
    // expected-remark @+1 {{not pipelined (rule 5): 3 slots need 180224 bytes of shared memory, there are 166912; fewer stages or smaller tiles}}
    memref.copy %tile, %b : memref<128x64xf16, strided<[512, 1], offset: ?>> to memref<128x64xf16, #ws>
    gpu.barrier
    %v = memref.load %b[%c0, %c0] : memref<128x64xf16, #ws>
    gpu.barrier
  }
  return
}

// -----

// Barriers of the loop may order what it reads of %p: it is not read early.
#ws = #gpu.address_space<workgroup>
func.func @rule_3_read_of_other_memory(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<64xf32, #ws>
  %p = memref.alloc() : memref<64xf32, #ws>
  memref.store %zero, %p[%t] : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    // expected-remark @below {{not pipelined (rule 3): its buffer is not filled by copies that are pipelined, so that barriers of the loop may order it; read it before the loop, or fill it by copies that can be pipelined}}
    %y = memref.load %p[%other] : memref<64xf32, #ws>
    %z = arith.addf %x, %y : f32
    gpu.printf "%f", %z : f32
    gpu.barrier
  }
  return
}

// -----

// Two rows at once are no copy of neighbours.
#ws = #gpu.address_space<workgroup>
func.func @rule_1_two_rows(%A: memref<64x64xf32>, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %a = memref.alloc() : memref<2x64xf32, #ws>
  scf.for %k = %c0 to %c64 step %c1 {
    %u = vector.load %A[%k, %t] : memref<64x64xf32>, vector<2x4xf32>
    // expected-remark @+1 {{not pipelined (rule 1): 'vector.load' moves more than one row of elements, or may leave the bounds of its memref}}
    vector.store %u, %a[%c0, %t] : memref<2x64xf32, #ws>, vector<2x4xf32>
    gpu.barrier
    %x = memref.load %a[%c0, %c0] : memref<2x64xf32, #ws>
    gpu.barrier
  }
  return
}

// -----

// The outer loop fills one half of the buffer after the other, and both are read.
#ws = #gpu.address_space<workgroup>
func.func @rule_2_outer_loop(%A: memref<64x64xf32>, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %a = memref.alloc() : memref<2x64xf32, #ws>
  scf.for %half = %c0 to %c2 step %c1 {
    scf.for %k = %c0 to %c64 step %c1 {
      %u = memref.load %A[%k, %t] : memref<64x64xf32>
      // expected-remark @+1 {{not pipelined (rule 2): where it writes in its buffer changes from iteration to iteration}}
      memref.store %u, %a[%half, %t] : memref<2x64xf32, #ws>
      gpu.barrier
      %x = memref.load %a[%c0, %c0] : memref<2x64xf32, #ws>
      gpu.barrier
    }
  }
  return
}

// -----

// A kernel for wgmma, and a target without.
func.func @no_wgmma() {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  // expected-error @+1 {{its schedule needs wgmma, which sm_80 does not have: compile for sm_90a, or leave the engine out}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [64, 64, 64], warp = [16, 64], stages = [3, 2], engine = "wgmma"}>}
  return
}
