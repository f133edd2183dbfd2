// RUN: alcop-opt %s --alcop-update-arguments --split-input-file --verify-diagnostics

// expected-error @+1 {{'alcop.in_place' of argument 1: expected the number of a result, less than 1}}
func.func @no_such_result(%x: tensor<8xf16> {alcop.in_place = 1 : i64}) -> tensor<8xf16> {
  return %x : tensor<8xf16>
}

// -----

// expected-error @+1 {{'alcop.in_place' of argument 1: expected the number of a result}}
func.func @no_number(%x: tensor<8xf16> {alcop.in_place = "y"}) -> tensor<8xf16> {
  return %x : tensor<8xf16>
}

// -----

// expected-error @+1 {{'alcop.in_place' of argument 2: result 1 is tensor<8xf16>, expected tensor<4xf16> as the argument}}
func.func @another_type(%x: tensor<8xf16>, %y: tensor<4xf16> {alcop.in_place = 0 : i64}) -> tensor<8xf16> {
  return %x : tensor<8xf16>
}

// -----

// expected-error @+1 {{'alcop.in_place' of argument 2: result 1 is that of another argument}}
func.func @twice(%x: tensor<8xf16> {alcop.in_place = 0 : i64}, %y: tensor<8xf16> {alcop.in_place = 0 : i64}) -> tensor<8xf16> {
  return %x : tensor<8xf16>
}
