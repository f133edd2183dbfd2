"""torch.compile(model, backend="alcop"): results, guards, fallbacks, training."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import metadata
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-torch")

from llama import LlamaBlock, LlamaStep  # noqa: E402
from mlp import Mlp  # noqa: E402
from small import SMALL, TYPES  # noqa: E402

from alcop_mlir.runtime.launch import Program  # noqa: E402
from alcop_mlir.torch import alcop  # noqa: E402

# Largest difference from f64, in parts of the largest value: a few roundings.
TOLERANCE = {"f16": 4e-3, "bf16": 3e-2, "f32": 4e-3}
# Each in f16, of which two in all types: the emulator takes seconds for a network.
COMPILED = [
    *((name, dtype) for name in ("mlp", "bert_layer") for dtype in TYPES),
    ("bert_layer_masked", "f16"),
    ("bert", "f16"),
    ("gpt2", "f16"),
    ("llama_block", "bf16"),
    ("llama_step", "f16"),
    ("resnet_basic", "f16"),
    ("resnet_bottleneck", "f16"),
]


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of another test: no graphs of Dynamo's, no bundles."""
    torch._dynamo.reset()
    monkeypatch.setenv("ALCOP_CACHE_DIR", str(tmp_path))


def check(got: Any, model: Any, inputs: Any, dtype: str) -> None:
    """`got` is what `model` gives in f64, but for roundings."""
    wide = [one.double() if one.is_floating_point() else one for one in inputs]
    with torch.no_grad():
        wanted = model.double()(*wide)
    for one, other in zip(tuples(got), tuples(wanted), strict=True):
        assert one.shape == other.shape
        error = (one.double() - other).abs().max() / other.abs().max()
        assert error < TOLERANCE[dtype]


def tuples(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def compiled(function: Any, **options: Any) -> Any:
    """By the backend itself, and with an error where it would fall back."""
    return torch.compile(function, backend=alcop, fullgraph=True, options=options)


@pytest.mark.parametrize(("name", "dtype"), COMPILED)
def test_models(name: str, dtype: str) -> None:
    model, inputs = SMALL[name].made(TYPES[dtype])
    with torch.no_grad():
        got = compiled(model, allow_tf32=True)(*inputs)
    assert {one.dtype for one in tuples(got)} == {TYPES[dtype]}
    check(got, model, inputs, dtype)


def test_it_is_found_by_name() -> None:
    """torch looks for backends among entry points of what is installed."""
    points = metadata.entry_points(group="torch_dynamo_backends")
    assert points["alcop"].load() is alcop


def test_products_are_on_tensor_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 16-bit types, with a bias: operands stay what they are in memory."""
    programs = noted_programs(monkeypatch)
    model, inputs = SMALL["mlp"].made(torch.float16)
    with torch.no_grad():
        compiled(model)(*inputs)
    found = set(re.findall(r"mma\.sync\S+", programs[0].ptx))
    assert found == {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"}


def noted_programs(monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """The programs that are compiled from here on, as they come."""
    programs: list[Program] = []
    made = Program.__init__

    def noted(self: Program, *arguments: Any) -> None:
        made(self, *arguments)
        programs.append(self)

    monkeypatch.setattr(Program, "__init__", noted)
    return programs


def test_arguments_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arrays that the program is given are the tensors' own memory."""
    addresses: list[int] = []
    call = Program.__call__

    def noted(self: Program, *arrays: Any, **rest: Any) -> Any:
        addresses.extend(array.ctypes.data for array in arrays)
        return call(self, *arrays, **rest)

    monkeypatch.setattr(Program, "__call__", noted)
    model, (x,) = SMALL["mlp"].made(torch.float16)
    with torch.no_grad():
        result = compiled(model)(x)
    kept = (x, result, *model.parameters())
    assert {one.data_ptr() for one in kept} == set(addresses)


def test_sizes_known_at_run_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """One bundle for all sizes: another size does not compile again."""
    programs = noted_programs(monkeypatch)
    model = Mlp((64, 32)).half()
    run = torch.compile(model, backend=alcop, fullgraph=True, dynamic=True)
    with torch.no_grad():
        for rows in (16, 24, 5):
            x = torch.randn(rows, 64).half()
            assert torch.allclose(run(x), model(x), atol=2e-3)
    (program,) = programs
    assert isinstance(program.function.parameters[-1].shape[0], str)


def test_a_weight_of_another_shape_is_compiled_anew() -> None:
    model = Mlp((64, 32)).half()
    run, x = compiled(model), torch.randn(16, 64).half()
    with torch.no_grad():
        assert run(x).shape == (16, 32)
        model.layers[0] = torch.nn.Linear(64, 48).half()
        check(run(x), model, (x,), "f16")


@pytest.mark.parametrize("shapes", [[(8,), (8,)], [(8,), (8, 4)], [(3, 5, 8), (8,)]])
def test_products_of_vectors(shapes: list[tuple[int, ...]]) -> None:
    x, y = map(torch.randn, shapes)
    torch.testing.assert_close(compiled(torch.matmul)(x, y), x @ y)


@pytest.mark.parametrize(
    ("norm_first", "masked"),
    [(False, ""), (True, "src_mask"), (True, "src_key_padding_mask")],
)
def test_encoder_layers_by_torchs_fast_path(norm_first: bool, masked: str) -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        16, 2, 32, batch_first=True, norm_first=norm_first, activation="gelu"
    ).eval()
    x = torch.randn(2, 6, 16)
    later = torch.ones(6, 6).triu(1).bool()
    masks = {"src_mask": later, "src_key_padding_mask": later[3:5]}
    given = {name: one for name, one in masks.items() if name == masked}
    with torch.no_grad():
        got = compiled(layer)(x, **given)
        torch.testing.assert_close(got, layer(x, **given))


def test_constants_of_the_program() -> None:
    """They are parts of the graph, and of the name of its bundle."""
    x = torch.randn(4, 2)
    for values in ([1.0, 2.0], [1.0, 3.0]):
        got = compiled(lambda x, values=values: x * torch.tensor(values))(x)
        assert torch.equal(got, x * torch.tensor(values))
        torch._dynamo.reset()


def test_outputs_that_need_not_be_computed() -> None:
    x = torch.randn(16, 8)

    def function(x: Any) -> Any:
        return x, x + 1, None, x.t(), x + 1

    same, more, nothing, turned, again = compiled(function)(x)
    assert same is x
    assert nothing is None
    assert torch.equal(turned, x.t())
    assert torch.equal(more, x + 1)
    assert torch.equal(again, more)


def test_arguments_are_written() -> None:
    x = torch.zeros(4, 8)
    compiled(lambda x: x.add_(1))(x)
    assert torch.equal(x, torch.ones(4, 8))


def test_arrays_with_gaps_and_odd_places() -> None:
    every = torch.randn(64, 65)
    for x in (every.t(), every[:, 1:], every.view(-1)[1:641].view(64, 10)):
        assert torch.equal(compiled(lambda x: x + 1)(x), x + 1)
        torch._dynamo.reset()


def spectrum(x: Any) -> Any:
    return torch.fft.fft(x).real


def chosen(x: Any) -> Any:
    return x[x > 0] + 1


def derivative(x: Any) -> Any:
    return torch.special.digamma(x)


def running_sum(x: Any) -> Any:
    return x.cumsum(0)


def nothing(x: Any) -> Any:
    return x[:, :0].reshape(-1, 2) + 1


def dropped(x: Any) -> Any:
    return torch.nn.functional.dropout(x, 0.5) * 0


def branches(x: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


REFUSED: dict[Any, str] = {
    spectrum: r"aten\._fft_r2c.* \(.*test_backend\.py:\d+\): .* complex",
    chosen: r"aten\.(nonzero|index).*test_backend\.py:\d+\): its size is known only",
    derivative: r"aten\.digamma\.\w+ \(.*test_backend\.py:\d+\): torch-mlir does not",
    running_sum: r"aten\.cumsum\.\w+ \(.*test_backend\.py:\d+\): no kernel .* running",
    dropped: r"aten\.native_dropout.* \(.*test_backend\.py:\d+\): random numbers",
    branches: r"cond \(.*\.py:\d+\): an op that is no function of arrays",
    nothing: r"aten\.slice.* \(.*test_backend\.py:\d+\): an array without elements",
}


# Dynamo itself leaves what gives sizes that only running tells out of its graphs.
@pytest.mark.parametrize("function", [one for one in REFUSED if one is not chosen])
def test_eager_with_one_warning(function: Callable[[Any], Any]) -> None:
    """It names the op and the reason; results are torch's."""
    x = torch.eye(8) + 0.5
    with pytest.warns(RuntimeWarning, match="eager mode") as warned:
        got = torch.compile(function, backend=alcop, dynamic=False)(x)
    assert torch.equal(got, function(x))
    last = str(warned.list[-1].message)
    assert re.search(REFUSED[function], last)
    assert len(warned) == 1


@pytest.mark.parametrize("function", REFUSED)
def test_no_fallback_from_a_full_graph(function: Callable[[Any], Any]) -> None:
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    try:
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as raised:
            compiled(function)(torch.eye(8) + 0.5)
    finally:
        torch._dynamo.config.capture_dynamic_output_shape_ops = False
    assert re.search(REFUSED[function], str(raised.value))


def test_several_devices() -> None:
    """Here those of arguments and results, of which one has no memory."""
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as raised:
        compiled(lambda x: (x + 1).to("meta"))(torch.ones(4))
    found = r"results on several devices: argument '\w+' on cpu, .*\.py:\d+\) on meta"
    assert re.search(found, str(raised.value))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"targt": "sm_80"}, "unknown option 'targt', expected one of target, sched"),
        ({"target": 80}, "option 'target' is 80, expected a str"),
        ({"target": "sm_12"}, "unknown target 'sm_12'"),
        ({"schedule": "stages=a"}, "stages"),
        ({"variants": 0}, "variants"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=message):
        torch.compile(lambda x: x + 1, backend=alcop, options=options)(torch.ones(4))


def test_training() -> None:
    """Both passes are compiled, and gradients are torch's."""
    model, x = Mlp((64, 64, 32)), torch.randn(16, 64)
    gradients = gradients_of(compiled(model)(x), model)
    for one, other in zip(gradients, gradients_of(model(x), model), strict=True):
        torch.testing.assert_close(one, other)


def gradients_of(result: Any, model: Any) -> list[Any]:
    model.zero_grad()
    result.square().mean().backward()
    return [one.grad for one in model.parameters()]


def test_a_backward_pass_in_eager_mode() -> None:
    """One that needs an op without a kernel, after a forward pass that needs none."""

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient.cumsum(0)

    x = torch.randn(4, 8, requires_grad=True)
    run = torch.compile(Function.apply, backend=alcop)
    with pytest.warns(RuntimeWarning, match=r"a backward graph .* aten\.cumsum"):
        run(x).sum().backward()
    assert torch.equal(x.grad, torch.ones(4, 8).cumsum(0))


def test_tokens_one_by_one() -> None:
    """With a cache of keys and values: what the block gives for all tokens at once."""
    torch.manual_seed(0)
    block = LlamaBlock(32, heads=2, groups=1, hidden=64).half().eval()
    x = torch.randn(1, 2, 32).half()
    run = compiled(LlamaStep(block))
    keys, values = torch.zeros(2, 1, 1, 16, 16).half()
    with torch.no_grad():
        wanted = block(x)
        for token in range(2):
            place = torch.tensor([token])
            got, keys, values = run(x[:, token : token + 1], place, keys, values)
            torch.testing.assert_close(
                got[:, 0], wanted[:, token], atol=2e-3, rtol=2e-3
            )
