// RUN: alcop-opt %s --alcop-separate-views --split-input-file --verify-diagnostics | FileCheck %s

// What overlaps stays together.
// CHECK-LABEL: @overlapping
// CHECK-COUNT-2: memref.view
#ws = #gpu.address_space<workgroup>
func.func @overlapping(%x: f32, %y: f16) {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  // expected-remark @below {{its views are not separated: bytes 128 to 256 are seen as memref<64xf32, #gpu.address_space<workgroup>> and as memref<64xf16, #gpu.address_space<workgroup>>}}
  %bytes = memref.alloc() : memref<256xi8, #ws>
  %a = memref.view %bytes[%c0][] : memref<256xi8, #ws> to memref<64xf32, #ws>
  %b = memref.view %bytes[%c128][] : memref<256xi8, #ws> to memref<64xf16, #ws>
  memref.store %x, %a[%c0] : memref<64xf32, #ws>
  memref.store %y, %b[%c0] : memref<64xf16, #ws>
  return
}

// -----

// CHECK-LABEL: @another_type
// CHECK-COUNT-2: memref.view
#ws = #gpu.address_space<workgroup>
func.func @another_type(%x: f32, %y: i32) {
  %c0 = arith.constant 0 : index
  // expected-remark @below {{its views are not separated: bytes 0 to 256 are seen as}}
  %bytes = memref.alloc() : memref<256xi8, #ws>
  %a = memref.view %bytes[%c0][] : memref<256xi8, #ws> to memref<64xf32, #ws>
  %b = memref.view %bytes[%c0][] : memref<256xi8, #ws> to memref<64xi32, #ws>
  memref.store %x, %a[%c0] : memref<64xf32, #ws>
  memref.store %y, %b[%c0] : memref<64xi32, #ws>
  return
}

// -----

// CHECK-LABEL: @place_not_known
// CHECK:         memref.view
#ws = #gpu.address_space<workgroup>
func.func @place_not_known(%x: f32, %place: index) {
  %c0 = arith.constant 0 : index
  // expected-remark @below {{its views are not separated: a view's offset or size is not constant}}
  %bytes = memref.alloc() : memref<256xi8, #ws>
  %a = memref.view %bytes[%place][] : memref<256xi8, #ws> to memref<16xf32, #ws>
  memref.store %x, %a[%c0] : memref<16xf32, #ws>
  return
}

// -----

// CHECK-LABEL: @bytes_used
// CHECK:         memref.view
#ws = #gpu.address_space<workgroup>
func.func @bytes_used(%x: f32, %y: i8) {
  %c0 = arith.constant 0 : index
  // expected-remark @below {{its views are not separated: 'memref.store' uses the bytes themselves}}
  %bytes = memref.alloc() : memref<256xi8, #ws>
  %a = memref.view %bytes[%c0][] : memref<256xi8, #ws> to memref<64xf32, #ws>
  memref.store %x, %a[%c0] : memref<64xf32, #ws>
  memref.store %y, %bytes[%c0] : memref<256xi8, #ws>
  return
}

// -----

// Two ops that are the same memory.
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @overlapping_dynamic(%x: f32, %i: i32, %t: index) kernel {
    %c0 = arith.constant 0 : index
    %c128 = arith.constant 128 : index
    // expected-remark @below {{its views are not separated: bytes 128 to 256 are seen as memref<64xf32, #gpu.address_space<workgroup>> and as memref<64xi32, #gpu.address_space<workgroup>>}}
    %one = gpu.dynamic_shared_memory : memref<?xi8, #ws>
    %a = memref.view %one[%c0][] : memref<?xi8, #ws> to memref<64xf32, #ws>
    %two = gpu.dynamic_shared_memory : memref<?xi8, #ws>
    %b = memref.view %two[%c128][] : memref<?xi8, #ws> to memref<64xi32, #ws>
    memref.store %x, %a[%t] : memref<64xf32, #ws>
    memref.store %i, %b[%t] : memref<64xi32, #ws>
    gpu.return
  }
}

// -----

// A kernel and what it calls have the same dynamic memory.
// CHECK-LABEL: gpu.module @calls
// CHECK-COUNT-2: memref.view
#ws = #gpu.address_space<workgroup>
gpu.module @calls {
  gpu.func @called(%x: f32, %t: index) {
    %c0 = arith.constant 0 : index
    // expected-remark @below {{its views are not separated: kernels that call the function may use the bytes}}
    %bytes = gpu.dynamic_shared_memory : memref<?xi8, #ws>
    %a = memref.view %bytes[%c0][] : memref<?xi8, #ws> to memref<64xf32, #ws>
    memref.store %x, %a[%t] : memref<64xf32, #ws>
    gpu.return
  }
  func.func private @reads(%t: index) -> f32
  gpu.func @calling(%x: f32, %C: memref<64xf32>, %t: index) kernel {
    %c0 = arith.constant 0 : index
    // expected-remark @below {{its views are not separated: what 'func.call' calls may use the bytes}}
    %bytes = gpu.dynamic_shared_memory : memref<?xi8, #ws>
    %a = memref.view %bytes[%c0][] : memref<?xi8, #ws> to memref<64xf32, #ws>
    memref.store %x, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %y = func.call @reads(%t) : (index) -> f32
    memref.store %y, %C[%t] : memref<64xf32>
    gpu.return
  }
}
