"""Pipelines in text form, our passes and MLIR's own mixed: checked, built and run."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from alcop_mlir.bindings import ir, passmanager
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import ConfigError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Configured, Pass
from alcop_mlir.pipelines import upstream
from alcop_mlir.pipelines.instrument import Instrument
from alcop_mlir.pipelines.named import NamedPipeline, find_named_pipeline
from alcop_mlir.pipelines.pipeline_text import (
    Element,
    nest,
    parse_elements,
    parse_pipeline,
)
from alcop_mlir.pipelines.registry import Registry
from alcop_mlir.pipelines.running import Anchor, BuiltPipeline, Guard, PassStep
from alcop_mlir.pipelines.running import PassCrash as PassCrash
from alcop_mlir.pipelines.running import PassFailure as PassFailure

_MODULE = "builtin.module"


def run_pipeline(
    op: ir.Operation | ir.Module,
    text: str,
    *,
    passes: Iterable[type[Pass]] = (),
    instruments: Sequence[Instrument] = (),
    verify_each: bool = True,
) -> None:
    """Run the pipeline `text`, as `builtin.module(cse, ...)`, on a module or op.

    The op stays the caller's, and is changed in place. `passes` are the caller's own,
    known in `text` by their names.

    Raises ConfigError for a wrong text, before anything runs; PassFailure where a pass
    fails; whatever AlcopError a pass raises.
    """
    registry = Registry()
    with op.operation.context:
        registry.add(passes)
        pipeline = build(
            parse_pipeline(text), registry, instruments, verify_each=verify_each
        )
        pipeline.run(op.operation)


def build(
    pipeline: Element,
    registry: Registry,
    instruments: Sequence[Instrument] = (),
    *,
    verify_each: bool = True,
    command: str = "alcop-opt",
) -> BuiltPipeline:
    """A pipeline ready to run in the current context; ConfigError where it is wrong.

    `command` is how to run it again after a crash, without file and pipeline.
    """
    # Here, not in the first pass: loading a dialect during a run may be unsafe.
    alcop.load()
    builder = _Builder(registry, tuple(instruments), verify_each)
    anchor = builder.anchor(pipeline, ())
    return BuiltPipeline(anchor, tuple(instruments), command)


def nest_implicitly(elements: Iterable[Element], registry: Registry) -> Element:
    """A pipeline on a module, each pass nested under the op that it must run on.

    For passes given as flags. Passes that may run anywhere run on the module;
    neighbours under the same op share it, as in mlir-opt. Needs a current context.
    """
    groups: list[tuple[str, list[Element]]] = []
    for element in elements:
        anchor = _anchor_of(element, registry)
        if not groups or groups[-1][0] != anchor:
            groups.append((anchor, []))
        groups[-1][1].append(element)
    children: list[Element] = []
    for anchor, group in groups:
        if anchor in ("any", _MODULE):
            children += group
        elif anchor == "gpu.func":
            children.append(nest("gpu.module", [nest(anchor, group)]))
        else:
            children.append(nest(anchor, group))
    return nest(_MODULE, children)


@frozen
class _Builder:
    """Turns elements into steps, in the current context."""

    registry: Registry
    instruments: tuple[Instrument, ...]
    verify_each: bool

    def anchor(self, element: Element, path: tuple[str, ...]) -> Anchor:
        name = element.name
        if name != "any" and "." not in name:
            raise element.error(
                f"'{name}' is no op to run on, expected one such as 'func.func'; "
                "options of a pass stand in braces"
            )
        path = (*path, name)
        children = element.children or ()
        return Anchor(
            name, tuple(step for child in children for step in self.steps(child, path))
        )

    def steps(
        self, element: Element, path: tuple[str, ...]
    ) -> Iterator[Anchor | PassStep]:
        if element.children is not None:
            yield self.anchor(element, path)
        elif pipeline := find_named_pipeline(element.name):
            yield from self._expand(element, pipeline, path)
        elif python_pass := self.registry.find_pass(element.name):
            yield self._python_step(element, python_pass, path)
        else:
            yield self._upstream_step(element, path)

    def _expand(
        self,
        element: Element,
        pipeline: type[NamedPipeline],
        path: tuple[str, ...],
    ) -> Iterator[Anchor | PassStep]:
        _check_anchor(element, _MODULE, path)
        configured = _configure(element, pipeline)
        try:
            for text in configured.steps():
                for child in parse_elements(text):
                    yield from self.steps(child, path)
        except ConfigError as error:
            why = _first_line(error)
            raise element.error(f"in pipeline '{element.name}': {why}") from None

    def _python_step(
        self, element: Element, python_pass: type[Pass], path: tuple[str, ...]
    ) -> PassStep:
        _check_anchor(element, python_pass.anchor, path)
        guard = Guard(_configure(element, python_pass))
        manager = passmanager.PassManager(path[-1])
        # Never pass `op_name`: that aborts the process.
        manager.add(guard, name=python_pass.__name__, argument=element.name)
        return self._step(element, path, manager, guard)

    def _upstream_step(self, element: Element, path: tuple[str, ...]) -> PassStep:
        known = upstream.find(element.name)
        if known is None:
            raise element.error(unknown_pass(element.name, self.registry))
        _check_anchor(element, known.anchor, path)
        manager = passmanager.PassManager(path[-1])
        upstream.add(manager, element)
        return self._step(element, path, manager, None)

    def _step(
        self, element: Element, path: tuple[str, ...], manager: Any, guard: Guard | None
    ) -> PassStep:
        manager.enable_verifier(self.verify_each)
        step = PassStep(element.name, element, path, manager, guard)
        for instrument in self.instruments:
            instrument.configure(step, manager)
        return step


def is_known(name: str, registry: Registry) -> bool:
    """Whether a pass or pipeline has that name. Needs a current context."""
    return name in registry.names() or upstream.find(name) is not None


def unknown_pass(name: str, registry: Registry) -> str:
    """A message that no pass has this name, with similar names."""
    known = (*registry.names(), *upstream.names())
    return f"unknown pass '{name}'{similar(name, known)}"


def similar(name: str, known: Iterable[str], dashes: str = "") -> str:
    """The question whether one of those `known` was meant, where some are similar."""
    near = difflib.get_close_matches(name, list(known), n=2)
    hint = " or ".join(f"'{dashes}{other}'" for other in near)
    return f", did you mean {hint}?" if hint else ""


def _configure(element: Element, kind: type[Any]) -> Any:
    """An instance of a pass or pipeline with the options of `element`."""
    assert issubclass(kind, Configured)
    values: dict[str, str] = {}
    for given in element.options():
        at = given.at
        try:
            option = kind.find_option(given.key)
            at = given.value_at
            option.read(given.value, f"{kind.kind} '{kind.name}'")
        except ConfigError as error:
            raise element.error(str(error), at) from None
        values[given.key] = given.value
    try:
        return kind.from_text(values)
    except ConfigError as error:
        raise element.error(str(error)) from None


def _check_anchor(element: Element, anchor: str, path: tuple[str, ...]) -> None:
    if anchor in ("any", path[-1]):
        return
    raise element.error(
        f"'{element.name}' runs on '{anchor}', not on '{path[-1]}'; "
        f"write '{anchor}({element.text})'"
    )


def _anchor_of(element: Element, registry: Registry) -> str:
    if find_named_pipeline(element.name):
        return _MODULE
    if python_pass := registry.find_pass(element.name):
        return python_pass.anchor
    known = upstream.find(element.name)
    if known is None:
        raise element.error(unknown_pass(element.name, registry))
    return known.anchor


def _first_line(error: Exception) -> str:
    """The message of an error in a text, without its line and column."""
    return str(error).split("\n", 1)[0].split(": ", 1)[-1]
