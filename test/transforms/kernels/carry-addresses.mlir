// RUN: alcop-opt %s --alcop-carry-addresses --canonicalize --cse --split-input-file \
// RUN:   | FileCheck %s

// One address serves copies at constant distances, in the loop and in the one after it.
// CHECK-LABEL: func.func @along_rows
// CHECK:         %[[START:.*]] = llvm.inline_asm {{.*}}"mov.b64 $0, $1;"
// CHECK:         %[[FIRST:.*]] = arith.index_cast %[[START]]
// CHECK:         %[[END:.*]] = scf.for {{.*}} iter_args(%[[AT:.*]] = %[[FIRST]]) -> (index)
// CHECK:           llvm.inttoptr
// CHECK:           nvgpu.device_async_copy %{{.*}}[%c0{{.*}}], %{{.*}} : memref<1xf16> to
// CHECK:           arith.addi %[[AT]], %c64
// CHECK:           nvgpu.device_async_copy %{{.*}}[%c0{{.*}}], %{{.*}} : memref<1xf16> to
// CHECK:           arith.addi %[[AT]], %c128
// CHECK:           llvm.inline_asm
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %[[END]]) -> (index)
// CHECK:           nvgpu.device_async_copy %{{.*}}[%c0{{.*}}], %{{.*}} : memref<1xf16> to
#ws = #gpu.address_space<workgroup>
func.func @along_rows(%A: memref<?x?xf16>, %s: memref<64x32xf16, #ws>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %rows = arith.muli %n, %c64 : index
  %row = gpu.thread_id x
  scf.for %k = %c0 to %rows step %c64 {
    %0 = nvgpu.device_async_copy %A[%row, %k], %s[%row, %c0], 8 {bypassL1}
      : memref<?x?xf16> to memref<64x32xf16, #ws>
    %far = arith.addi %k, %c32 : index
    %1 = nvgpu.device_async_copy %A[%row, %far], %s[%row, %c0], 8 {bypassL1}
      : memref<?x?xf16> to memref<64x32xf16, #ws>
  }
  %end = arith.addi %rows, %c64 : index
  scf.for %k = %rows to %end step %c32 {
    %is_inside = arith.cmpi slt, %k, %n : index
    scf.if %is_inside {
      %0 = nvgpu.device_async_copy %A[%row, %k], %s[%row, %c0], 8 {bypassL1}
        : memref<?x?xf16> to memref<64x32xf16, #ws>
    }
  }
  return
}

// -----

// Copies a number of rows apart: the address goes from one to the next.
// CHECK-LABEL: func.func @down_rows
// CHECK:         memref.extract_strided_metadata
// CHECK:         %[[HOP:.*]] = arith.muli %{{.*}}, %c64
// CHECK:         scf.for {{.*}} iter_args(%[[AT:.*]] = %{{.*}}) -> (index)
// CHECK:           nvgpu.device_async_copy
// CHECK:           arith.addi %[[AT]], %[[HOP]]
// CHECK:           %[[MOVED:.*]] = llvm.inline_asm
// CHECK:           %[[SECOND:.*]] = arith.index_cast %[[MOVED]]
// CHECK:           nvgpu.device_async_copy
// CHECK:           arith.addi %[[SECOND]], %[[HOP]]
// CHECK:           llvm.inline_asm
// CHECK:           scf.yield
#ws = #gpu.address_space<workgroup>
func.func @down_rows(%A: memref<?x?xf16>, %s: memref<64x32xf16, #ws>, %n: index) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %column = gpu.thread_id x
  scf.for %k = %c0 to %n step %c64 {
    %0 = nvgpu.device_async_copy %A[%k, %column], %s[%c0, %column], 8 {bypassL1}
      : memref<?x?xf16> to memref<64x32xf16, #ws>
    %far = arith.addi %k, %c32 : index
    %1 = nvgpu.device_async_copy %A[%far, %column], %s[%c0, %column], 8 {bypassL1}
      : memref<?x?xf16> to memref<64x32xf16, #ws>
  }
  return
}

// -----

// A loop that does not start where the other ended begins anew, as does one in a branch.
// CHECK-LABEL: func.func @apart
// CHECK:         %[[END:.*]] = scf.for
// CHECK-NOT:     = %[[END]])
// CHECK:         scf.if
// CHECK:           llvm.inline_asm
// CHECK:           scf.for
#ws = #gpu.address_space<workgroup>
func.func @apart(%A: memref<?x?xf16>, %s: memref<64x32xf16, #ws>, %n: index, %b: i1) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %rows = arith.muli %n, %c32 : index
  %end = arith.addi %rows, %c32 : index
  %row = gpu.thread_id x
  scf.for %k = %c0 to %rows step %c32 {
    %0 = nvgpu.device_async_copy %A[%row, %k], %s[%row, %c0], 8 {bypassL1}
      : memref<?x?xf16> to memref<64x32xf16, #ws>
  }
  scf.for %k = %n to %end step %c32 {
    %0 = nvgpu.device_async_copy %A[%row, %k], %s[%row, %c0], 8 {bypassL1}
      : memref<?x?xf16> to memref<64x32xf16, #ws>
  }
  scf.if %b {
    scf.for %k = %rows to %end step %c32 {
      %0 = nvgpu.device_async_copy %A[%row, %k], %s[%row, %c0], 8 {bypassL1}
        : memref<?x?xf16> to memref<64x32xf16, #ws>
    }
  }
  return
}

// -----

// Nor does one go on after a loop whose last step goes beyond its end, or that has not
// begun with the first column.
// CHECK-LABEL: func.func @beyond
// CHECK:         %[[END:.*]] = scf.for
// CHECK-NOT:     = %[[END]])
// CHECK-LABEL: func.func @begun_later
// CHECK:         %[[END:.*]] = scf.for
// CHECK-NOT:     = %[[END]])
// CHECK:         return
#ws = #gpu.address_space<workgroup>
func.func @beyond(%A: memref<?x?xf16>, %s: memref<64x32xf16, #ws>, %n: index) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %end = arith.addi %n, %c32 : index
  %row = gpu.thread_id x
  scf.for %k = %c0 to %n step %c32 {
    %0 = nvgpu.device_async_copy %A[%row, %k], %s[%row, %c0], 8 {bypassL1}
      : memref<?x?xf16> to memref<64x32xf16, #ws>
  }
  scf.for %k = %n to %end step %c32 {
    %0 = nvgpu.device_async_copy %A[%row, %k], %s[%row, %c0], 8 {bypassL1}
      : memref<?x?xf16> to memref<64x32xf16, #ws>
  }
  return
}
func.func @begun_later(%A: memref<?x?xf16>, %s: memref<64x32xf16, #ws>, %n: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %rows = arith.muli %n, %c32 : index
  %end = arith.addi %rows, %c32 : index
  %row = gpu.thread_id x
  scf.for %k = %c8 to %rows step %c32 {
    %0 = nvgpu.device_async_copy %A[%row, %k], %s[%row, %c0], 8 {bypassL1}
      : memref<?x?xf16> to memref<64x32xf16, #ws>
  }
  scf.for %k = %rows to %end step %c32 {
    %0 = nvgpu.device_async_copy %A[%row, %k], %s[%row, %c0], 8 {bypassL1}
      : memref<?x?xf16> to memref<64x32xf16, #ws>
  }
  return
}

// -----

// Rows at a distance that is a constant: one address for all, 16 rows of 128 bytes apart.
// So has what is copied after the loop, but not from another row.
// CHECK-LABEL: func.func @constant_strides
// CHECK:         %[[END:.*]] = scf.for {{.*}} iter_args(%[[AT:.*]] = %{{.*}}) -> (index)
// CHECK:           nvgpu.device_async_copy
// CHECK:           arith.addi %[[AT]], %c2048
// CHECK:           nvgpu.device_async_copy
// CHECK:           %[[NEXT:.*]] = arith.addi %[[AT]], %c4096
// CHECK:           llvm.inline_asm
// CHECK:           scf.yield
// CHECK:         arith.addi %[[END]], %c6144
// CHECK:         nvgpu.device_async_copy %{{.*}}[%c0{{.*}}], %{{.*}} : memref<1xf16> to
// CHECK:         nvgpu.device_async_copy %{{.*}}[%c1072, %c0], {{.*}} : memref<1280x64xf16> to
#ws = #gpu.address_space<workgroup>
func.func @constant_strides(%B: memref<1280x64xf16>, %s: memref<64x32xf16, #ws>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c1024 = arith.constant 1024 : index
  %row = gpu.thread_id x
  scf.for %k = %c0 to %c1024 step %c32 {
    %first = arith.addi %k, %row : index
    %0 = nvgpu.device_async_copy %B[%first, %c0], %s[%row, %c0], 8 {bypassL1}
      : memref<1280x64xf16> to memref<64x32xf16, #ws>
    %second = arith.addi %first, %c16 : index
    %1 = nvgpu.device_async_copy %B[%second, %c0], %s[%row, %c0], 8 {bypassL1}
      : memref<1280x64xf16> to memref<64x32xf16, #ws>
  }
  %c1072 = arith.constant 1072 : index
  %last = arith.addi %row, %c1072 : index
  %2 = nvgpu.device_async_copy %B[%last, %c0], %s[%row, %c0], 8 {bypassL1}
    : memref<1280x64xf16> to memref<64x32xf16, #ws>
  %3 = nvgpu.device_async_copy %B[%c1072, %c0], %s[%row, %c0], 8 {bypassL1}
    : memref<1280x64xf16> to memref<64x32xf16, #ws>
  return
}

// -----

// Left unchanged: an index that is not linear; rows that the loop loads; a step that is
// not known.
// CHECK-LABEL: func.func @unchanged
// CHECK-NOT:     llvm.
#ws = #gpu.address_space<workgroup>
func.func @unchanged(%A: memref<?x?xf16>, %rows: memref<?xindex>,
                     %s: memref<64x32xf16, #ws>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %row = gpu.thread_id x
  scf.for %k = %c0 to %n step %c32 {
    %wrapped = arith.remui %k, %c32 : index
    %1 = nvgpu.device_async_copy %A[%row, %wrapped], %s[%row, %c0], 8 {bypassL1}
      : memref<?x?xf16> to memref<64x32xf16, #ws>
    %loaded = memref.load %rows[%k] : memref<?xindex>
    %2 = nvgpu.device_async_copy %A[%loaded, %k], %s[%row, %c0], 8 {bypassL1}
      : memref<?x?xf16> to memref<64x32xf16, #ws>
  }
  scf.for %k = %c0 to %n step %n {
    %0 = nvgpu.device_async_copy %A[%row, %k], %s[%row, %c0], 8 {bypassL1}
      : memref<?x?xf16> to memref<64x32xf16, #ws>
  }
  return
}

// -----

// Loads of single elements, in a loop with a barrier: an address that goes from row to
// row is carried, one that only moves along a row is left to LLVM.
// CHECK-LABEL: func.func @elements
// CHECK:         scf.for {{.*}} iter_args(%[[AT:.*]] = %{{.*}}) -> (index)
// CHECK:           llvm.load %{{.*}} : !llvm.ptr<1> -> f16
// CHECK:           memref.load %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x?xf16>
// CHECK:           %[[MOVED:.*]] = arith.addi %[[AT]]
// CHECK:           llvm.load %{{.*}} : !llvm.ptr<1> -> f16
#ws = #gpu.address_space<workgroup>
func.func @elements(%A: memref<?x?xf16>, %B: memref<?x?xf16>, %s: memref<64xf16, #ws>, %n: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %t = gpu.thread_id x
  scf.for %k = %c0 to %n step %c8 {
    %first = memref.load %A[%k, %t] : memref<?x?xf16>
    %other = memref.load %B[%t, %k] : memref<?x?xf16>
    %down = arith.addi %k, %c8 : index
    %second = memref.load %A[%down, %t] : memref<?x?xf16>
    memref.store %first, %s[%t] : memref<64xf16, #ws>
    memref.store %other, %s[%t] : memref<64xf16, #ws>
    memref.store %second, %s[%t] : memref<64xf16, #ws>
    gpu.barrier
  }
  return
}

// -----

// Where no threads meet, loads are left unchanged.
// CHECK-LABEL: func.func @apart
// CHECK-NOT:     llvm.
// CHECK:         return
func.func @apart(%A: memref<?x?xf16>, %n: index) -> f16 {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f16
  %t = gpu.thread_id x
  %sum = scf.for %k = %c0 to %n step %c8 iter_args(%s = %zero) -> (f16) {
    %first = memref.load %A[%k, %t] : memref<?x?xf16>
    %down = arith.addi %k, %c8 : index
    %second = memref.load %A[%down, %t] : memref<?x?xf16>
    %one = arith.addf %s, %first : f16
    %two = arith.addf %one, %second : f16
    scf.yield %two : f16
  }
  return %sum : f16
}
