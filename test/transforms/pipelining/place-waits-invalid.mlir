// RUN: alcop-opt %s --alcop-place-waits --split-input-file --verify-diagnostics

func.func @unknown_group(%a: i1, %g: !nvgpu.device.async.token) {
  // expected-error @+1 {{alcop-place-waits: the group waited for comes from 'func.func', expected an alcop.producer_commit reached through scf.for and scf.if only}}
  "alcop.consumer_wait"(%g) : (!nvgpu.device.async.token) -> ()
  return
}

// -----

func.func private @make() -> !nvgpu.device.async.token
func.func @called() {
  %g = func.call @make() : () -> !nvgpu.device.async.token
  // expected-error @+1 {{the group waited for comes from 'func.call'}}
  "alcop.consumer_wait"(%g) : (!nvgpu.device.async.token) -> ()
  return
}
