"""Convolutions of all forms, as MLIR and in NumPy.

Dimensions have letters: "n" images, "d", "h", "w" pixels or taps, "g" groups of
channels, "c" channels, "f" filters. Arrays hold small whole numbers, so that results
are exact whatever the order of additions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from alcop_mlir import dtypes
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule

Array = np.ndarray
SPATIAL = "dhw"
# Image, filter and output of linalg's ops; depthwise ones have groups of one channel.
NAMED = {
    "conv_1d_nwc_wcf": "nwc wcf nwf",
    "conv_1d_ncw_fcw": "ncw fcw nfw",
    "conv_2d_nhwc_hwcf": "nhwc hwcf nhwf",
    "conv_2d_nhwc_fhwc": "nhwc fhwc nhwf",
    "conv_2d_nchw_fchw": "nchw fchw nfhw",
    "conv_2d_ngchw_fgchw": "ngchw fgchw ngfhw",
    "conv_2d_ngchw_gfchw": "ngchw gfchw ngfhw",
    "conv_2d_nhwgc_gfhwc": "nhwgc gfhwc nhwgf",
    "conv_3d_ndhwc_dhwcf": "ndhwc dhwcf ndhwf",
    "conv_3d_ncdhw_fcdhw": "ncdhw fcdhw nfdhw",
    "conv_1d": "w w w",
    "conv_2d": "hw hw hw",
    "conv_3d": "dhw dhw dhw",
    "depthwise_conv_1d_nwc_wc": "nwg wg nwg",
    "depthwise_conv_1d_nwc_wcm": "nwg wgf nwgf",
    "depthwise_conv_1d_ncw_cw": "ngw gw ngw",
    "depthwise_conv_2d_nhwc_hwc": "nhwg hwg nhwg",
    "depthwise_conv_2d_nchw_chw": "nghw ghw nghw",
    "depthwise_conv_2d_nhwc_hwcm": "nhwg hwgf nhwgf",
    "depthwise_conv_3d_ndhwc_dhwc": "ndhwg dhwg ndhwg",
    "depthwise_conv_3d_ncdhw_cdhw": "ngdhw gdhw ngdhw",
    "depthwise_conv_3d_ndhwc_dhwcm": "ndhwg dhwgf ndhwgf",
    # Of bytes, of each of which a zero point is subtracted.
    "conv_2d_nhwc_hwcf_q": "nhwc hwcf nhwf",
    "conv_2d_nhwc_fhwc_q": "nhwc fhwc nhwf",
    "conv_2d_nchw_fchw_q": "nchw fchw nfhw",
    "conv_2d_ngchw_gfchw_q": "ngchw gfchw ngfhw",
    "conv_2d_nhwgc_gfhwc_q": "nhwgc gfhwc nhwgf",
    "conv_3d_ndhwc_dhwcf_q": "ndhwc dhwcf ndhwf",
    "depthwise_conv_2d_nhwc_hwc_q": "nhwg hwg nhwg",
    "depthwise_conv_2d_nhwc_hwcm_q": "nhwg hwgf nhwgf",
}
ZERO_POINTS = (3, -2)


@dataclass(frozen=True)
class Window:
    """Along one dimension: the image's size, the window, and zeros around the image.

    backwards: whether the last tap meets the first pixel
    step:      from a pixel to the next, with zeros between them
    """

    extent: int = 6
    taps: int = 3
    stride: int = 1
    dilation: int = 1
    low: int = 1
    high: int = 1
    backwards: bool = False
    step: int = 1

    @property
    def padded(self) -> int:
        """The size of the image with all zeros."""
        return (self.extent - 1) * self.step + 1 + self.low + self.high

    @property
    def count(self) -> int:
        """How often the window fits."""
        room = self.padded - (self.taps - 1) * self.dilation - 1
        return room // self.stride + 1


@dataclass(frozen=True)
class Scatter(Window):
    """The other way round: what a window adds to the output, at strides of pixels.

    low, high: outputs before and after those that are added to
    """

    @property
    def count(self) -> int:
        """The size of the output."""
        reach = (self.extent - 1) * self.stride + (self.taps - 1) * self.dilation
        return reach + 1 + self.low + self.high


@dataclass(frozen=True)
class Form:
    """A convolution; `layouts` as in `NAMED`, `name` "" for a linalg.generic.

    open:  letters of the sizes that are known at run time only
    """

    name: str = ""
    layouts: str = "nhwc hwcf nhwf"
    sizes: dict[str, int] = field(default_factory=lambda: dict(n=1, g=2, c=16, f=8))
    windows: dict[str, Window] = field(
        default_factory=lambda: dict.fromkeys(SPATIAL, Window())
    )
    kinds: tuple[str, str] = ("f16", "f32")
    open: str = ""

    @property
    def operands(self) -> list[str]:
        """The letters of image, filter and output."""
        return self.layouts.split()

    @property
    def spatial(self) -> str:
        """The letters along which windows move, in the order of the image."""
        return "".join(letter for letter in self.operands[0] if letter in SPATIAL)

    @property
    def is_quantised(self) -> bool:
        """Whether zero points are subtracted."""
        return self.name.endswith("_q")

    @property
    def is_scattered(self) -> bool:
        """Whether the output is what windows move over."""
        return any(isinstance(self.windows[one], Scatter) for one in self.spatial)

    def shape(self, number: int, padded: bool = False) -> list[int]:
        """The shape of image (0), filter (1) or output (2)."""

        def size(letter: str) -> int:
            if letter not in SPATIAL:
                return self.sizes[letter]
            window = self.windows[letter]
            is_padded = padded and not self.is_scattered
            extent = window.padded if is_padded else window.extent
            return (extent, window.taps, window.count)[number]

        return [size(letter) for letter in self.operands[number]]

    def kind(self, number: int, padded: bool = False) -> str:
        """The tensor type of an operand."""
        letters, shape = self.operands[number], self.shape(number, padded)
        is_open = [
            letter in self.open and (number != 1 or letter not in SPATIAL)
            for letter in letters
        ]
        sizes = ["?" if one else str(n) for one, n in zip(is_open, shape, strict=True)]
        return f"tensor<{'x'.join([*sizes, self.kinds[number == 2]])}>"

    def text(self) -> str:
        """A function of image, filter, and a tensor of the output's size."""
        x, w, y = (self.kind(number) for number in range(3))
        given, out = self.kinds
        padded, zero = self.kind(0, padded=True), f"arith.constant {_zero(given)}"
        return f"""
          func.func @conv(%x: {x}, %w: {w}, %e: {y}) -> {y} {{
            %zero = {zero} : {given}
            {self._padding(x, padded)}
            %none = arith.constant {_zero(out)} : {out}
            %i = linalg.fill ins(%none : {out}) outs(%e : {y}) -> {y}
            {self._op(padded, w, y)}
            return %y : {y}
          }}"""

    def _padding(self, x: str, padded: str) -> str:
        if self.is_scattered:
            return ""
        if any(self.windows[letter].step > 1 for letter in self.spatial):
            return self._spread(x, padded)
        low, high = (
            [
                getattr(self.windows[letter], side) if letter in SPATIAL else 0
                for letter in self.operands[0]
            ]
            for side in ("low", "high")
        )
        indices = ", ".join(f"%i{n}: index" for n in range(len(low)))
        return f"""%p = tensor.pad %x low{low} high{high} {{
            ^bb0({indices}):
              tensor.yield %zero : {self.kinds[0]}
            }} : {x} to {padded}"""

    def _spread(self, x: str, padded: str) -> str:
        """The image with zeros between its pixels as well."""
        windows = [self.windows.get(letter) for letter in self.operands[0]]
        offsets = [window.low if window else 0 for window in windows]
        steps = [window.step if window else 1 for window in windows]
        kind, sizes, lines, wide = self.kinds[0], [], [], []
        for number, (letter, size) in enumerate(
            zip(self.operands[0], self.shape(0), strict=True)
        ):
            sizes.append(f"%n{letter}" if letter in self.open else str(size))
            if letter in self.open:
                wide.append(f"%m{letter}")
                lines.append(self._padded_size(number, letter, windows[number], x))
        whole, given = "\n".join(lines), ", ".join(sizes)
        return f"""{whole}
            %pe = tensor.empty({", ".join(wide)}) : {padded}
            %pf = linalg.fill ins(%zero : {kind}) outs(%pe : {padded}) -> {padded}
            %p = tensor.insert_slice %x into %pf{offsets} [{given}] {steps}
              : {x} into {padded}"""

    def _padded_size(
        self, number: int, letter: str, window: Window | None, x: str
    ) -> str:
        """The size of a dimension of the image, and of what is padded."""
        step = window.step if window else 1
        more = window.padded - window.extent * step if window else 0
        return f"""%i{letter} = arith.constant {number} : index
            %n{letter} = tensor.dim %x, %i{letter} : {x}
            %s{letter} = arith.constant {step} : index
            %p{letter} = arith.muli %n{letter}, %s{letter} : index
            %c{letter} = arith.constant {more} : index
            %m{letter} = arith.addi %p{letter}, %c{letter} : index"""

    def _op(self, padded: str, w: str, y: str) -> str:
        if not self.name:
            return self._generic(padded, w, y)
        windows = [self.windows[letter] for letter in self.spatial]
        rank = f"tensor<{len(windows)}xi64>"
        strides = f"strides = dense<{[one.stride for one in windows]}> : {rank}"
        dilations = f"dilations = dense<{[one.dilation for one in windows]}> : {rank}"
        steps = f"{{{dilations}, {strides}}}" if "_n" in self.name else ""
        points, values, types = "", "", ""
        if self.is_quantised:
            points = "".join(
                f"%z{number} = arith.constant {value} : i32\n"
                for number, value in enumerate(ZERO_POINTS)
            )
            values, types = ", %z0, %z1", ", i32, i32"
        return f"""{points} %y = linalg.{self.name} {steps}
            ins(%p, %w{values} : {padded}, {w}{types}) outs(%i : {y}) -> {y}"""

    def _generic(self, padded: str, w: str, y: str) -> str:
        """By indexing maps; the loop of a tap has the letter and an "r"."""
        image, weights, out = self.operands
        loops = list(dict.fromkeys([*out, *(f"{letter}r" for letter in self.spatial)]))
        loops += [letter for letter in image if letter not in [*loops, *SPATIAL]]
        windows = image if not self.is_scattered else out
        indices = [
            self._index(letter) if letter in SPATIAL else letter for letter in windows
        ]
        taps = [f"{letter}r" if letter in SPATIAL else letter for letter in weights]
        operands = (indices, taps, list(out))
        if self.is_scattered:
            operands = (list(image), taps, indices)
        maps = ", ".join(
            f"affine_map<({', '.join(loops)}) -> ({', '.join(one)})>"
            for one in operands
        )
        kinds = ", ".join(
            '"parallel"' if loop in operands[2] else '"reduction"' for loop in loops
        )
        given, total = self.kinds
        padded = self.kind(0) if self.is_scattered else padded
        image_name = "%x" if self.is_scattered else "%p"
        return f"""%y = linalg.generic {{indexing_maps = [{maps}],
                iterator_types = [{kinds}]}}
              ins({image_name}, %w : {padded}, {w}) outs(%i : {y}) {{
            ^bb0(%a: {given}, %b: {given}, %o: {total}):
              {_product(given, total)}
              linalg.yield %s : {total}
            }} -> {y}"""

    def _index(self, letter: str) -> str:
        window = self.windows[letter]
        place, tap = f"{letter} * {window.stride}", f"{letter}r * {window.dilation}"
        if isinstance(window, Scatter):
            return f"{place} + {tap} + {window.low}"
        if window.backwards:
            return f"{place} - {tap} + {(window.taps - 1) * window.dilation}"
        return f"{place} + {tap}"

    def arrays(self, seed: int = 0) -> list[Array]:
        """Image and filter of small whole numbers; an output of others."""
        random = np.random.default_rng(seed)
        values = [random.integers(-3, 4, self.shape(number)) for number in range(3)]
        kinds = (self.kinds[0], *self.kinds)
        return [
            np.ascontiguousarray(dtypes.encode(one.astype(np.float64), kind))
            for one, kind in zip(values, kinds, strict=True)
        ]

    def expected(self, arrays: list[Array]) -> Array:
        """The output, in float64."""
        x, w = (
            dtypes.decode(array, self.kinds[0]).astype(np.float64)
            for array in arrays[:2]
        )
        if self.is_quantised:
            x, w = x - ZERO_POINTS[0], w - ZERO_POINTS[1]
        if self.is_scattered:
            return self._scattered(x, w)
        image, weights, out = self.operands
        x = self._with_zeros(x, -ZERO_POINTS[0] if self.is_quantised else 0)
        border = [
            (self.windows[one].low, self.windows[one].high)
            if one in SPATIAL
            else (0, 0)
            for one in image
        ]
        # Zero points are subtracted of the border as well.
        fill = -ZERO_POINTS[0] if self.is_quantised else 0
        x = np.pad(x, border, constant_values=fill)
        total = np.zeros(self.shape(2))
        plain = "".join(letter for letter in weights if letter not in SPATIAL)
        for tap in product(*(range(self.windows[one].taps) for one in self.spatial)):
            at = dict(zip(self.spatial, tap, strict=True))
            seen = tuple(self._seen(one, at) for one in image)
            taps = tuple(at.get(one, slice(None)) for one in weights)
            total += np.einsum(f"{image},{plain}->{out}", x[seen], w[taps])
        return total

    def _with_zeros(self, x: Array, fill: int) -> Array:
        """The image with zeros between its pixels, none of them around it."""
        steps = [
            self.windows[one].step if one in SPATIAL else 1 for one in self.operands[0]
        ]
        shape = [(n - 1) * step + 1 for n, step in zip(x.shape, steps, strict=True)]
        spread = np.full(shape, fill, x.dtype)
        spread[tuple(slice(None, None, step) for step in steps)] = x
        return spread

    def _scattered(self, x: Array, w: Array) -> Array:
        """The output that windows are added to."""
        image, weights, out = self.operands
        total = np.zeros(self.shape(2))
        plain = "".join(letter for letter in weights if letter not in SPATIAL)
        for tap in product(*(range(self.windows[one].taps) for one in self.spatial)):
            at = dict(zip(self.spatial, tap, strict=True))
            added = tuple(self._added(one, at) for one in out)
            taps = tuple(at.get(one, slice(None)) for one in weights)
            total[added] += np.einsum(f"{image},{plain}->{out}", x, w[taps])
        return total

    def _added(self, letter: str, at: dict[str, int]) -> slice:
        if letter not in SPATIAL:
            return slice(None)
        window = self.windows[letter]
        first = window.low + at[letter] * window.dilation
        last = first + (window.extent - 1) * window.stride
        return slice(first, last + 1, window.stride)

    def _seen(self, letter: str, at: dict[str, int]) -> slice:
        if letter not in SPATIAL:
            return slice(None)
        window = self.windows[letter]
        tap = window.taps - 1 - at[letter] if window.backwards else at[letter]
        first = tap * window.dilation
        return slice(
            first, first + (window.count - 1) * window.stride + 1, window.stride
        )

    def check(self, schedule: str = "") -> Program:
        """Compile, run on the emulator, and compare with NumPy and the reference.

        schedule: of all contractions; "" leaves it to the compiler
        """
        program = self.compiled(schedule)
        self.run(program)
        return program

    def compiled(self, schedule: str = "") -> Program:
        """The program; `schedule` as of `check`."""
        source = inputs.read(self.text())
        asked = Schedule.parse(schedule) if schedule else None
        options = compiler.Options(schedule=asked, use_ptxas=False, allow_tf32=True)
        return Program(compiler.compile_source(source, options), device="emulator")

    def run(self, program: Program) -> None:
        """Run a program of these sizes, or in which they are open, and compare."""
        arrays = self.arrays()
        out = np.zeros_like(arrays[2])
        program(*arrays, out)
        found = dtypes.decode(out, self.kinds[1]).astype(np.float64)
        np.testing.assert_array_equal(found, self.expected(arrays), str(self))
        function = program.function
        assert function.reference, self
        names = [parameter.name for parameter in function.parameters]
        before = dict(zip(names, [*arrays, np.zeros_like(out)], strict=True))
        assert checking.check(function, before, {**before, names[-1]: out}).ok, self

    def of_extents(self, images: int, *extents: int) -> Form:
        """The same of so many images, of so many pixels along each dimension."""
        windows = {
            letter: replace(self.windows[letter], extent=extent)
            for letter, extent in zip(self.spatial, extents, strict=True)
        }
        return replace(self, sizes={**self.sizes, "n": images}, windows=windows)


def _zero(kind: str) -> str:
    return "0" if dtypes.is_integer(kind) else "0.0"


def _product(given: str, total: str) -> str:
    """What is added to %o, widened where types differ."""
    suffix, extend = ("i", "extsi") if dtypes.is_integer(given) else ("f", "extf")
    wide, names = "", ("%a", "%b")
    if given != total:
        names = ("%c", "%d")
        wide = "\n".join(
            f"{new} = arith.{extend} {old} : {given} to {total}"
            for new, old in zip(names, ("%a", "%b"), strict=True)
        )
    return f"""{wide}
              %m = arith.mul{suffix} {names[0]}, {names[1]} : {total}
              %s = arith.add{suffix} %o, %m : {total}"""
