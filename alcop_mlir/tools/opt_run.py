"""What alcop-opt does once its command line is taken apart."""

from __future__ import annotations

import io
import sys
import traceback
from argparse import Namespace
from pathlib import Path
from typing import Any

import alcop_mlir
from alcop_mlir import diagnostics
from alcop_mlir.bindings import available_dialects, ir, make_context
from alcop_mlir.diagnostics import Diagnostic
from alcop_mlir.errors import AlcopError, ConfigError
from alcop_mlir.pipelines import checked_steps, driver, instrument
from alcop_mlir.pipelines.pipeline_text import Element, parse_elements, parse_pipeline
from alcop_mlir.pipelines.registry import Registry
from alcop_mlir.pipelines.statistics import PassStatistics
from alcop_mlir.tools import (
    command_line,
    opt_help,
    opt_input,
    user_passes,
    verify_diagnostics,
)
from alcop_mlir.tools.opt_input import SourcePart


def run(line: Namespace) -> int:
    """Do what the command line says; returns the exit status. Raises AlcopError."""
    registry = Registry()
    with make_context(line.allow_unregistered_dialect):
        for file in line.load:
            user_passes.load(file, registry)
        if line.help:
            print(opt_help.help_text(registry))
            return 0
        if line.list_passes:
            print(opt_help.list_text(registry))
            return 0
        if line.show_dialects:
            alcop_mlir.register(ir.Context.current)
            print(f"Available Dialects: {','.join(available_dialects())}")
            return 0
        return _transform(line, registry)


def _transform(line: Namespace, registry: Registry) -> int:
    if line.emit_bytecode and line.o == "-" and sys.stdout.isatty():
        raise ConfigError("bytecode is nothing for a terminal, give -o FILE")
    element = _pipeline(line, registry)
    if line.dump_pass_pipeline:
        print(f"Pass Manager with the pipeline:\n{element.text}", file=sys.stderr)
    timing, statistics = instrument.StepTimes(), PassStatistics()
    pipeline = driver.build(
        element,
        registry,
        [*_instruments(line, timing), *[statistics] * line.mlir_pass_statistics],
        verify_each=line.verify_each,
        command=_command(line),
    )
    source = opt_input.read(line.inputs[0] if line.inputs else "-")
    # A script of transform ops of ours, here or in a library: loaded where mentioned.
    if b"alcop_transform" in source.data or "transform-preload" in element.text:
        alcop_mlir.register(ir.Context.current)
    parts = [source]
    if line.split_input_file:
        marker = line.split_input_file
        marker = opt_input.SPLIT_MARKER if marker is True else marker
        parts = opt_input.split(source, marker)
    results = [_process(part, line, pipeline, timing) for part in parts]
    printed = [content for _, content in results if content is not None]
    ok = all(succeeded for succeeded, _ in results)
    if ok or line.o == "-":
        between = b"" if line.emit_bytecode else f"{opt_input.SPLIT_MARKER}\n".encode()
        command_line.write(between.join(printed), line.o)
    if line.mlir_timing:
        print(timing.table(), file=sys.stderr)
    if line.mlir_pass_statistics:
        print(statistics.table(), file=sys.stderr)
    return 0 if ok else 1


def _pipeline(line: Namespace, registry: Registry) -> Element:
    text = line.pass_pipeline
    if text is not None:
        return parse_pipeline(text)
    elements = []
    for name, element in line.passes:
        if not driver.is_known(name, registry):
            raise ConfigError(opt_help.unknown_flag(name, registry))
        elements += parse_elements(element)
    return driver.nest_implicitly(elements, registry)


def _instruments(
    line: Namespace, timing: instrument.StepTimes
) -> list[instrument.Instrument]:
    found: list[instrument.Instrument] = []
    if line.mlir_timing:
        found.append(timing)
    if line.verify_each:
        found.append(checked_steps.CheckPipelines())
    changes, failures = (
        line.mlir_print_ir_after_change,
        line.mlir_print_ir_after_failure,
    )
    options = {
        "print_after_change": changes,
        "print_after_failure": failures,
        "print_module_scope": line.mlir_print_ir_module_scope,
        **_printing(line),
    }
    before = _names(line, "mlir_print_ir_before")
    after = _names(line, "mlir_print_ir_after")
    directory = line.mlir_print_ir_tree_dir
    if directory is not None:
        found.append(instrument.PrintTree(Path(directory), after or None))
        after = frozenset()  # to the files instead
    elif (changes or failures) and not after:
        after = None
    if before != frozenset() or after != frozenset():
        found.append(instrument.PrintIR(before, after, options))
    return found


def _printing(line: Namespace) -> dict[str, Any]:
    """How IR is printed, at the end or between passes."""
    return {
        "enable_debug_info": line.mlir_print_debuginfo,
        "print_generic_op_form": line.mlir_print_op_generic,
        "large_elements_limit": line.mlir_elide_elementsattrs_if_larger,
    }


def _names(line: Namespace, flag: str) -> frozenset[str] | None:
    """The passes to print at, None for all."""
    if getattr(line, f"{flag}_all"):
        return None
    return frozenset(filter(None, getattr(line, flag).split(",")))


def _command(line: Namespace) -> str:
    """How to call alcop-opt again on a reproducer, without file and pipeline."""
    loads = [f"--load={file}" for file in line.load]
    unregistered = ["--allow-unregistered-dialect"]
    return " ".join(
        ["alcop-opt", *loads, *unregistered * line.allow_unregistered_dialect]
    )


def _process(
    source: SourcePart,
    line: Namespace,
    pipeline: driver.BuiltPipeline,
    timing: instrument.StepTimes,
) -> tuple[bool, bytes | None]:
    """Whether all went as it should, and the result where there is one."""
    said: list[Diagnostic] = []
    printed = None
    handle = said.append if line.verify_diagnostics else source.show
    with diagnostics.handled_by(handle), diagnostics.handle_all_of(ir.Context.current):
        try:
            with timing.phase("Parser"):
                op = source.parse(not line.no_implicit_module).operation
            pipeline.run(op)
            with timing.phase("Output"):
                printed = _printed(op, source, line)
        except driver.PassFailure as failure:
            for diagnostic in failure.diagnostics:
                handle(diagnostic)
            _explain(failure)
            if isinstance(failure, driver.PassCrash):
                return False, None
        except ir.MLIRError as error:
            for found in error.error_diagnostics:
                handle(diagnostics.from_mlir(found))
        except AlcopError as error:
            print(f"error: {error}", file=sys.stderr)
            return False, None
    if not line.verify_diagnostics:
        return printed is not None, printed
    only_expected = line.verify_diagnostics == "only-expected"
    given = map(source.named, said)
    wrong = verify_diagnostics.check(source.name, source.text, given, only_expected)
    for diagnostic in wrong:
        source.show(diagnostic)
    return not wrong, printed


def _printed(op: ir.Operation, source: SourcePart, line: Namespace) -> bytes:
    """The op in the form that the command line asks for."""
    if line.emit_bytecode:
        data = io.BytesIO()
        op.write_bytecode(data)
        return data.getvalue()
    text = op.get_asm(use_local_scope=line.mlir_print_local_scope, **_printing(line))
    return f"{source.with_name(text).rstrip()}\n".encode()


def _explain(failure: driver.PassFailure) -> None:
    """Say what the diagnostics do not."""
    if not isinstance(failure, driver.PassCrash):
        if not failure.diagnostics:
            print(f"error: {failure}", file=sys.stderr)
        return
    if failure.__cause__ is not None:
        # A defect, not bad input: whoever reports it needs the traceback.
        traceback.print_exception(failure.__cause__)
    print(f"error: {failure.why}", file=sys.stderr)
