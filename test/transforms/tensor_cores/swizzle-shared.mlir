// RUN: alcop-opt %s --alcop-swizzle-shared --split-input-file | FileCheck %s

// Rows of 64 bytes: two of them fill the banks, so rows two apart are told apart. Each
// kind of access is permuted alike.
// CHECK-LABEL: @rows_of_64_bytes(
// CHECK-SAME:      %{{.*}}, %[[S:.*]]: index, %[[R:.*]]: index, %[[C:.*]]: index)
// CHECK:         %[[PAIR:.*]] = arith.shrui %[[R]], %c1
// CHECK:         %[[PHASE:.*]] = arith.andi %[[PAIR]], %c3
// CHECK:         %[[CHUNK:.*]] = arith.shli %[[PHASE]], %c3
// CHECK:         %[[X0:.*]] = arith.xori %[[C]], %[[CHUNK]]
// CHECK:         nvgpu.device_async_copy %{{.*}}[%[[R]], %[[C]]], %{{.*}}[%[[S]], %[[R]], %[[X0]]], 8
// CHECK:         %[[X1:.*]] = arith.xori %[[C]]
// CHECK:         nvgpu.ldmatrix %{{.*}}[%[[S]], %[[R]], %[[X1]]]
// CHECK:         %[[X2:.*]] = arith.xori %[[C]]
// CHECK:         vector.load %{{.*}}[%[[S]], %[[R]], %[[X2]]]
// CHECK:         %[[X3:.*]] = arith.xori %[[C]]
// CHECK:         vector.store %{{.*}}[%[[S]], %[[R]], %[[X3]]]
// CHECK:         %[[X4:.*]] = arith.xori %[[C]]
// CHECK:         memref.load %{{.*}}[%[[S]], %[[R]], %[[X4]]]
// CHECK:         %[[X5:.*]] = arith.xori %[[C]]
// CHECK:         memref.store %{{.*}}[%[[S]], %[[R]], %[[X5]]]
#ws = #gpu.address_space<workgroup>
func.func @rows_of_64_bytes(%A: memref<64x32xf16>, %s: index, %r: index, %c: index) {
  %a = memref.alloc() : memref<3x64x32xf16, #ws>
  %t = nvgpu.device_async_copy %A[%r, %c], %a[%s, %r, %c], 8 {bypassL1} : memref<64x32xf16> to memref<3x64x32xf16, #ws>
  %f = nvgpu.ldmatrix %a[%s, %r, %c] {numTiles = 4 : i32, transpose = false} : memref<3x64x32xf16, #ws> -> vector<4x2xf16>
  %v = vector.load %a[%s, %r, %c] {alignment = 16 : i64} : memref<3x64x32xf16, #ws>, vector<8xf16>
  vector.store %v, %a[%s, %r, %c] {alignment = 16 : i64} : memref<3x64x32xf16, #ws>, vector<8xf16>
  %e = memref.load %a[%s, %r, %c] : memref<3x64x32xf16, #ws>
  memref.store %e, %a[%s, %r, %c] : memref<3x64x32xf16, #ws>
  return
}

// -----

// 128 bytes and more: all eight rows of an ldmatrix begin at the same bank.
// CHECK-LABEL: @rows_of_256_bytes(
// CHECK-NOT:   arith.shrui
// CHECK:       %[[PHASE:.*]] = arith.andi %arg0, %c7
// CHECK:       %[[CHUNK:.*]] = arith.shli %[[PHASE]], %c3
// CHECK:       %[[X:.*]] = arith.xori %arg1, %[[CHUNK]]
// CHECK:       nvgpu.ldmatrix %{{.*}}[%arg0, %[[X]]]
#ws = #gpu.address_space<workgroup>
func.func @rows_of_256_bytes(%r: index, %c: index) -> vector<4x2xf16> {
  %a = memref.alloc() : memref<32x128xf16, #ws>
  %f = nvgpu.ldmatrix %a[%r, %c] {numTiles = 4 : i32, transpose = true} : memref<32x128xf16, #ws> -> vector<4x2xf16>
  return %f : vector<4x2xf16>
}

// -----

// Rows of 96 bytes are 6 chunks: rows four apart collide, and two phases stay in a row.
// Elements of 4 bytes: 4 in a chunk, which is read as a whole.
// CHECK-LABEL: @rows_of_96_bytes(
// CHECK:       %[[FOUR:.*]] = arith.shrui %arg0, %c2
// CHECK:       %[[PHASE:.*]] = arith.andi %[[FOUR]], %c1
// CHECK:       %[[CHUNK:.*]] = arith.shli %[[PHASE]], %c2
// CHECK:       arith.xori %arg1, %[[CHUNK]]
#ws = #gpu.address_space<workgroup>
func.func @rows_of_96_bytes(%r: index, %c: index) -> vector<4xf32> {
  %a = memref.alloc() : memref<64x24xf32, #ws>
  %e = vector.load %a[%r, %c] {alignment = 16 : i64} : memref<64x24xf32, #ws>, vector<4xf32>
  return %e : vector<4xf32>
}

// -----

// Five chunks a row: eight rows begin at eight different places as they are. Rows that
// are no whole chunks, and global memory, are left as well.
// CHECK-LABEL: @nothing_to_gain
// CHECK-NOT:   arith.xori
#ws = #gpu.address_space<workgroup>
func.func @nothing_to_gain(%r: index, %c: index) -> (f16, f16, f16) {
  %odd = memref.alloc() : memref<32x40xf16, #ws>
  %padded = memref.alloc() : memref<32x33xf16, #ws>
  %global = memref.alloc() : memref<32x32xf16>
  %0 = memref.load %odd[%r, %c] : memref<32x40xf16, #ws>
  %1 = memref.load %padded[%r, %c] : memref<32x33xf16, #ws>
  %2 = memref.load %global[%r, %c] : memref<32x32xf16>
  return %0, %1, %2 : f16, f16, f16
}

// -----

// A vector of four elements from a multiple of four on stays within a chunk.
// CHECK-LABEL: @aligned_by_its_index
// CHECK:       arith.xori
// CHECK:       vector.load
#ws = #gpu.address_space<workgroup>
func.func @aligned_by_its_index(%r: index, %n: index) -> vector<4xf16> {
  %c4 = arith.constant 4 : index
  %c = arith.muli %n, %c4 : index
  %a = memref.alloc() : memref<32x32xf16, #ws>
  %v = vector.load %a[%r, %c] : memref<32x32xf16, #ws>, vector<4xf16>
  return %v : vector<4xf16>
}

// -----

// Single words: a warp reads 8 columns of 4 rows. Rows of 64 bytes, two of which fill
// the banks, are told apart two by two, in units of 32 bytes.
// CHECK-LABEL: @single_words(
// CHECK:       %[[PAIR:.*]] = arith.shrui %arg0, %c1
// CHECK:       %[[PHASE:.*]] = arith.andi %[[PAIR]], %c1
// CHECK:       %[[UNIT:.*]] = arith.shli %[[PHASE]], %c3
// CHECK:       %[[X:.*]] = arith.xori %arg1, %[[UNIT]]
// CHECK:       memref.load %{{.*}}[%arg0, %[[X]]]
#ws = #gpu.address_space<workgroup>
func.func @single_words(%r: index, %c: index) -> f32 {
  %a = memref.alloc() : memref<64x16xf32, #ws>
  %e = memref.load %a[%r, %c] : memref<64x16xf32, #ws>
  return %e : f32
}

// -----

// A buffer of bytes that is copied as bytes and read as pairs: the same chunks, of 16
// and of 8 elements.
// CHECK-LABEL: @two_faces(
// CHECK:       %[[P0:.*]] = arith.andi %arg1, %c7
// CHECK:       %[[CHUNK0:.*]] = arith.shli %[[P0]], %c4
// CHECK:       %[[X0:.*]] = arith.xori %arg2, %[[CHUNK0]]
// CHECK:       nvgpu.device_async_copy %{{.*}}, %{{.*}}[%arg1, %[[X0]]], 16
// CHECK:       %[[P1:.*]] = arith.andi %arg1, %c7
// CHECK:       %[[CHUNK1:.*]] = arith.shli %[[P1]], %c3
// CHECK:       %[[X1:.*]] = arith.xori %arg2, %[[CHUNK1]]
// CHECK:       nvgpu.ldmatrix %{{.*}}[%arg1, %[[X1]]]
#ws = #gpu.address_space<workgroup>
func.func @two_faces(%A: memref<32x128xi8>, %r: index, %c: index) -> vector<4x2xi16> {
  %c0 = arith.constant 0 : index
  %bytes = memref.alloc() : memref<4096xi8, #ws>
  %a = memref.view %bytes[%c0][] : memref<4096xi8, #ws> to memref<32x128xi8, #ws>
  %p = memref.view %bytes[%c0][] : memref<4096xi8, #ws> to memref<32x64xi16, #ws>
  %t = nvgpu.device_async_copy %A[%r, %c], %a[%r, %c], 16 {bypassL1} : memref<32x128xi8> to memref<32x128xi8, #ws>
  %f = nvgpu.ldmatrix %p[%r, %c] {numTiles = 4 : i32, transpose = true} : memref<32x64xi16, #ws> -> vector<4x2xi16>
  return %f : vector<4x2xi16>
}

// -----

// Faces with rows of different length cannot be permuted alike.
// CHECK-LABEL: @faces_that_differ(
// CHECK-NOT:   arith.xori
#ws = #gpu.address_space<workgroup>
func.func @faces_that_differ(%r: index, %c: index) -> (i8, i16) {
  %c0 = arith.constant 0 : index
  %bytes = memref.alloc() : memref<4096xi8, #ws>
  %a = memref.view %bytes[%c0][] : memref<4096xi8, #ws> to memref<32x128xi8, #ws>
  %p = memref.view %bytes[%c0][] : memref<4096xi8, #ws> to memref<64x32xi16, #ws>
  %0 = memref.load %a[%r, %c] : memref<32x128xi8, #ws>
  %1 = memref.load %p[%r, %c] : memref<64x32xi16, #ws>
  return %0, %1 : i8, i16
}

// -----

// Pairs of words, side by side: half a warp reads 32 bytes of 4 rows.
// CHECK-LABEL: @word_pairs(
// CHECK:       %[[HALF:.*]] = arith.shrui %arg0, %c1
// CHECK:       %[[ABOVE:.*]] = arith.andi %[[HALF]], %c2
// CHECK:       %[[ROW:.*]] = arith.xori %arg0, %[[ABOVE]]
// CHECK:       %[[PHASE:.*]] = arith.andi %[[ROW]], %c3
// CHECK:       %[[UNIT:.*]] = arith.shli %[[PHASE]], %c3
// CHECK:       %[[X:.*]] = arith.xori %arg1, %[[UNIT]]
// CHECK:       vector.load %{{.*}}[%arg0, %[[X]]]
#ws = #gpu.address_space<workgroup>
func.func @word_pairs(%r: index, %c: index) -> vector<2xf32> {
  %a = memref.alloc() : memref<64x32xf32, #ws>
  %e = vector.load %a[%r, %c] {alignment = 8 : i64} : memref<64x32xf32, #ws>, vector<2xf32>
  return %e : vector<2xf32>
}

// -----

// Single words of every other row: units of 16 bytes keep four of these apart.
// CHECK-LABEL: @every_other_row(
// CHECK:       %[[R:.*]] = arith.muli %arg0, %c2
// CHECK:       %[[PHASE:.*]] = arith.andi %[[R]], %c7
// CHECK:       %[[UNIT:.*]] = arith.shli %[[PHASE]], %c2
// CHECK:       %[[X:.*]] = arith.xori %arg1, %[[UNIT]]
// CHECK:       memref.load %{{.*}}[%[[R]], %[[X]]]
#ws = #gpu.address_space<workgroup>
func.func @every_other_row(%t: index, %c: index) -> f32 {
  %c2 = arith.constant 2 : index
  %r = arith.muli %t, %c2 : index
  %a = memref.alloc() : memref<64x32xf32, #ws>
  %e = memref.load %a[%r, %c] : memref<64x32xf32, #ws>
  return %e : f32
}
