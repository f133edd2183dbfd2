"""The text of a whole kernel: `kernel_text(kernel)`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from kernels import BYTES, CARRIED, WRAP, Buffer, Kernel, Loop
from text_effects import EffectText
from text_lines import SLOTS, SPACE
from text_reads import ReadText

PASSING = ("pass", "reduction")  # of what is beside a loop: through memory of its own


def kernel_text(kernel: Kernel) -> str:
    """A module with the kernel, as a gpu.func or in a gpu.launch."""
    return "\n".join(_KernelText(kernel).module()) + "\n"


def _without_unused_constants(lines: list[str]) -> list[str]:
    used = Counter(name for line in lines for name in re.findall(r"%\w+", line))
    return [
        line
        for line in lines
        if " = arith.constant" not in line or used[line.split()[0]] > 1
    ]


class _KernelText(ReadText, EffectText):
    """Writes the frame of a kernel, and its loops."""

    def module(self) -> list[str]:
        kernel = self.kernel
        promise = " {llvm.noalias}" if kernel.noalias else ""
        arguments = [f"%{a.name}: {a.type}{promise}" for a in kernel.arrays()]
        arguments += [f"%n{number}: index" for number in range(len(kernel.bounds()))]
        head = f"@kernel({', '.join(arguments)})"
        if kernel.allocation == "attribution":
            # Upstream aligns them to their elements only, cp.async needs more.
            aligned = " {llvm.align = 16 : i64}"
            buffers = [f"{name} : {kind}{aligned}" for name, kind in self._buffers()]
            attributions = f" workgroup({', '.join(buffers)})" if buffers else ""
            self.lines += [
                "module attributes {gpu.container_module} {",
                "gpu.module @kernels {",
                f"gpu.func {head}{attributions} kernel attributes "
                f"{{known_block_size = array<i32: {self.threads}, 1, 1>}} {{",
            ]
            end = ["  gpu.return", "}", "}", "}"]
        else:
            self.lines += [
                "module {",
                f"func.func {head} {{",
                "  %one = arith.constant 1 : index",
                f"  %size = arith.constant {self.threads} : index",
                "  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, "
                "%gz = %one) threads(%lx, %ly, %lz) in (%sx = %size, %sy = %one, "
                "%sz = %one) {",
            ]
            end = ["  gpu.terminator", "  }", "  return", "}", "}"]
        self._constants()
        self._body()
        return _without_unused_constants(self.lines) + end

    def _buffers(self) -> Iterator[tuple[str, str]]:
        for number, loop in enumerate(self.kernel.loops):
            if number and self.kernel.reuse:
                continue
            for place, buffer in enumerate(loop.buffers):
                if not buffer.is_register:
                    yield f"%b{number}{place}", self.allocated(buffer, loop)
        yield from self._side_buffers()

    def _side_buffers(self) -> Iterator[tuple[str, str]]:
        """What is not filled by the copies of a loop."""
        for number, loop in enumerate(self.kernel.loops):
            kind = self.side_type(loop.buffers[0].element)
            if "tile" in loop.beside:
                yield f"%q{number}", kind
            if any(one in loop.beside for one in PASSING):
                yield f"%w{number}", kind
        if self.kernel.foreign != "none":
            yield "%f", f"memref<{self.threads}x1xi32, {SPACE}>"

    def _constants(self) -> None:
        self.emit("%t = gpu.thread_id x")
        for value in range(33):
            self.emit(f"%c{value} = arith.constant {value} : index")
        self.emit(f"%wrap = arith.constant {WRAP} : index")
        self.emit("%seven = arith.constant 7 : i32")
        for element in BYTES:
            is_int = element == "i32"
            zero, factor = ("0", "3") if is_int else ("0.0", "0.5")
            self.emit(f"%zero_{element} = arith.constant {zero} : {element}")
            self.emit(f"%factor_{element} = arith.constant {factor} : {element}")

    def _body(self) -> None:
        kernel = self.kernel
        if kernel.allocation != "attribution":
            is_inside = kernel.allocation == "inside"
            buffers = self._side_buffers() if is_inside else self._buffers()
            for name, kind in buffers:
                self.emit(f"{name} = memref.alloc() : {kind}")
        for number, loop in enumerate(kernel.loops):
            for place, buffer in enumerate(loop.buffers):
                if buffer.view == "hoisted" and kernel.allocation != "inside":
                    self._view(number, place, buffer, loop)
        if kernel.outer:
            self.open("scf.for %o = %c0 to %c2 step %c1 {")
        self.foreign_issue()
        bound = 0
        for number, loop in enumerate(kernel.loops):
            if kernel.reuse:
                self.barrier()  # what the loop before read last
            self._prefill(number, loop)
            self.prepare_beside(number, loop)
            bound = self._loop(number, loop, bound)
        self.foreign_read()
        self.after()
        self.refill()
        if kernel.outer:
            self.close()

    def _prefill(self, number: int, loop: Loop) -> None:
        """What buffers hold where copies leave something as it was."""
        stale = [p for p, b in enumerate(loop.buffers) if b.guard == "stale"]
        if not stale:
            return
        self.barrier()  # what was read before
        for place in stale:
            self.fill(number, place, loop.buffers[place], loop)
        self.barrier()

    # -- one loop --------------------------------------------------------------------

    def _loop(self, number: int, loop: Loop, bound: int) -> int:
        lower, upper, bound = self._bounds(loop, bound)
        step = self.constant(loop.step)
        carried = [(f"%a{number}{p}", b.element) for p, b in enumerate(loop.buffers)]
        starts = [f"%zero_{b.element}" for b in loop.buffers]
        for place, buffer in enumerate(loop.buffers):
            if buffer.address in CARRIED:
                carried.append((f"%p{number}{place}", "index"))
                starts.append("%c1")
        pairs = ", ".join(
            f"{name} = {start}"
            for (name, _), start in zip(carried, starts, strict=True)
        )
        types = ", ".join(kind for _, kind in carried)
        results = f"%r{number}:{len(carried)}"
        of_type = ""
        if loop.index != "index":
            lower, upper, step = [
                self.new(f"arith.index_cast {value} : index to {loop.index}")
                for value in (lower, upper, step)
            ]
            of_type = f" : {loop.index}"
        self.open(
            f"{results} = scf.for %k{number} = {lower} to {upper} step {step} "
            f"iter_args({pairs}) -> ({types}){of_type} {{"
        )
        if of_type:
            self.emit(
                f"{self.index_of(number)} = arith.index_cast %k{number}{of_type} to "
                "index"
            )
        bound = self._iteration(number, loop, carried, bound)
        self.close()
        row = self.outer_row()
        for place, buffer in enumerate(loop.buffers):
            self.emit(
                f"memref.store %r{number}#{place}, %R{number}{place}[{row}, %t] : "
                f"{self.per_thread_type(buffer.element)}"
            )
        return bound

    def _bounds(self, loop: Loop, bound: int) -> tuple[str, str, int]:
        if loop.dynamic:
            lower = self.constant(0) if loop.has_parts else f"%n{bound}"
            return lower, f"%n{bound + 1}", bound + 2
        return self.constant(loop.lower), self.constant(loop.upper), bound

    def _iteration(
        self, number: int, loop: Loop, carried: list[tuple[str, str]], bound: int
    ) -> int:
        for place, buffer in enumerate(loop.buffers):
            if not buffer.is_register:
                self._make_visible(number, place, buffer, loop)
        conditions = self._conditions(number, loop)
        accumulators = carried[: len(loop.buffers)]
        results = [self._open_under(condition, loop) for condition in conditions]
        if loop.barrier_first and loop.is_shared and not loop.open:
            self.barrier()
        for place, buffer in enumerate(loop.buffers):
            if not buffer.is_register:
                self.copies(number, place, buffer, loop)
        self.synchronise(loop)
        steps = ""
        if any(b.read == "run-time-steps" for b in loop.buffers):
            steps, bound = f"%n{bound}", bound + 1
        accumulated = [
            self.reads(number, place, buffer, loop, steps)
            for place, buffer in enumerate(loop.buffers)
        ]
        accumulated[0] = self.effect(number, loop, accumulated[0])
        accumulated[0] = self.beside(number, loop, accumulated[0])
        if not loop.barrier_first and loop.is_shared and not loop.open:
            self.barrier()
        for result in reversed(results):
            self._close_under(number, loop, accumulated, accumulators)
            accumulated = [f"{result}#{place}" for place in range(len(accumulators))]
        following = [
            self.next_address(number, place, buffer, loop)
            for place, buffer in enumerate(loop.buffers)
            if buffer.address in CARRIED
        ]
        values = ", ".join([*accumulated, *following])
        types = ", ".join(kind for _, kind in carried)
        self.emit(f"scf.yield {values} : {types}")
        return bound

    def _conditions(self, number: int, loop: Loop) -> list[str]:
        """Of an iteration, the outer one first; the same for all threads."""
        index, found = self.index_of(number), list[str]()
        if loop.under in ("index", "both"):
            rest = self.new(f"arith.remui {index}, %c3 : index")
            found.append(self.new(f"arith.cmpi ne, {rest}, %c1 : index"))
        if loop.under in ("table", "both"):
            entry = self.looked_up(f"%U{number}", index, loop)
            rest = self.new(f"arith.remui {entry}, %c3 : index")
            found.append(self.new(f"arith.cmpi ne, {rest}, %c0 : index"))
        return found

    def _open_under(self, condition: str, loop: Loop) -> str:
        """Open a branch that yields the accumulators; what its results are called."""
        result = self.fresh()
        types = ", ".join(buffer.element for buffer in loop.buffers)
        number = len(loop.buffers)
        self.open(f"{result}:{number} = scf.if {condition} -> ({types}) {{")
        return result

    def _close_under(
        self,
        number: int,
        loop: Loop,
        values: list[str],
        before: list[tuple[str, str]],
    ) -> None:
        """Yield `values`; otherwise the accumulators as `before`, or others."""
        types = ", ".join(kind for _, kind in before)
        self.emit(f"scf.yield {', '.join(values)} : {types}")
        self.else_()
        old = [name for name, _ in before]
        if loop.otherwise:
            element = loop.buffers[0].element
            old[0] = self.accumulate(old[0], f"%factor_{element}", element)
            if loop.effect in ("store", "in-place", "atomic"):
                old[0] = self.effect(number, loop, old[0])
        self.emit(f"scf.yield {', '.join(old)} : {types}")
        self.close()

    def _make_visible(
        self, number: int, place: int, buffer: Buffer, loop: Loop
    ) -> None:
        """The buffer of an iteration, and the view of it."""
        is_inside = self.kernel.allocation == "inside"
        if is_inside and not self.is_reused(number):
            kind = self.allocated(buffer, loop)
            self.emit(f"%b{number}{place} = memref.alloc() : {kind}")
        hoisted = buffer.view == "hoisted" and not is_inside
        if buffer.view not in ("plain", "parts") and not hoisted:
            self._view(number, place, buffer, loop)

    def _view(self, number: int, place: int, buffer: Buffer, loop: Loop) -> None:
        memory, kind = self.buffer(number, place), self.allocated(buffer, loop)
        sizes = f"{self.threads}, {buffer.row}"
        offsets, ones = "1, 0", "1, 1"
        if buffer.view == "slots":
            count = f"%c{SLOTS}"
            slot = self.new(f"arith.remui {self.index_of(number)}, {count} : index")
            offsets, sizes, ones = f"{slot}, 0, 0", f"1, {sizes}", "1, 1, 1"
        self.emit(
            f"%v{number}{place} = memref.subview {memory}[{offsets}] [{sizes}] "
            f"[{ones}] : {kind} to {self.view_type(buffer, loop)}"
        )
