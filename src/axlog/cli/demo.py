"""`axlog demo`: run the supply chain pipeline, and show it in the terminal and on a page.

A simulator writes the partners' documents to a directory. The pipeline file of
`axlog.samples.supply_chain` reads them, on Spark or in this process. The terminal shows the data of
the live page, so both engines are shown in the same way.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.live import Live

from axlog.cli import live_page
from axlog.cli.check import missing
from axlog.cli.demo_tables import summary, tables, waiting
from axlog.cli.run import spark_engine
from axlog.errors import AxlogError, PipelineError
from axlog.samples import supply_chain

if TYPE_CHECKING:
    from axlog.pipeline.model import PipelineModel
    from axlog.runtime.progress import Progress
    from axlog.server.summaries import Observed

HEAD_START = 60 * supply_chain.HOUR
"""Simulated seconds that have passed when the engine starts."""
_FRAME = 0.25
_TRIES = 4


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("demo", epilog="Example: axlog demo --engine embedded --seconds 30")(demo)


def demo(
    engine: Annotated[str, typer.Option(help="spark, or embedded (in this process).")] = "spark",
    seconds: Annotated[
        float | None, typer.Option(help="Stop after this many seconds (default: run until Ctrl-C).")
    ] = None,
    rate: Annotated[float, typer.Option(help="Orders per simulated hour.")] = 4.0,
    speed: Annotated[float, typer.Option(help="Simulated hours per second.")] = 1.0,
    faults: Annotated[float, typer.Option(help="Fraction of the steps that fail.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 0,
    directory: Annotated[
        Path | None, typer.Option(help="Keep the documents here (default: a temporary directory).")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port of the live page (default: 8040, or a free port).")
    ] = None,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Serve the live page.")] = True,
) -> None:
    """Watch a supply chain live: orders that are late, can still be on time, or never will be.

    A web store, a bank, a warehouse, a supplier, a plant and a shipper publish UBL documents. A
    pipeline watches them. The page is reachable from this machine only.
    """
    if engine not in ("spark", "embedded"):
        raise typer.BadParameter("spark or embedded", param_hint="--engine")
    live_page.need_server()
    try:
        from axlog.pipeline.loader import load
    except ImportError as error:
        raise missing(error) from None
    console = Console()
    with ExitStack() as stack:
        place = _place(stack, directory)
        # The simulated clock runs faster than the clock of this machine: its times may be far
        # ahead.
        written = supply_chain.pipeline().replace("<ax:call ", '<ax:call ahead="none" ')
        (place / "supply-chain.yaml").write_text(written, encoding="utf-8")
        simulator = supply_chain.Simulator(place, seed=seed, rate=rate, faults=faults)
        simulator.until(HEAD_START)
        model = load(str(place / "supply-chain.yaml"))
        run = _Run(model, engine)
        stack.enter_context(_quiet(place / "out" / "run.log"))
        stack.enter_context(run.going())
        address = None
        if page:
            shown = live_page.page(run.observed, port, documents=run.documents)
            address = stack.enter_context(shown)
        _watch(console, run, simulator, address, seconds, speed)
        console.print(tables(run.observed, run.activity, None))
        console.print(summary(run.observed))


def _place(stack: ExitStack, directory: Path | None) -> Path:
    if directory is None:
        made = Path(tempfile.mkdtemp(prefix="axlog-demo-"))
        stack.callback(shutil.rmtree, made, ignore_errors=True)
        return made
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("in", "out"):
        if (directory / name).exists():
            raise typer.BadParameter(f"{directory} already has a run", param_hint="--directory")
    return directory


@contextmanager
def _quiet(log: Path) -> Iterator[None]:
    """Redirect standard error of logs, Java and workers to a file, to keep it out of the tables."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _watch(
    console: Console,
    run: _Run,
    simulator: supply_chain.Simulator,
    address: str | None,
    seconds: float | None,
    speed: float,
) -> None:
    """Advance the simulated time and show the state, until the time is over or the user stops."""
    began: float | None = None
    shown = monotonic()
    with (
        Live(console=console, refresh_per_second=4, transient=True) as live,
        suppress(KeyboardInterrupt),
    ):
        if not console.is_terminal:
            message = f"the live page is at {address}" if address else "no page"
            console.print(message, soft_wrap=True)
        while not run.is_over:
            if began is None and run.has_started:
                began = monotonic()
            passed = 0.0 if began is None else monotonic() - began
            if seconds is not None and passed >= seconds:
                break
            simulator.until(HEAD_START + passed * speed * supply_chain.HOUR)
            if monotonic() - shown >= _FRAME:
                shown = monotonic()
                live.update(
                    tables(run.observed, run.activity, address)
                    if run.has_started
                    else waiting(simulator.counts, run.activity, address)
                )
            sleep(0.05)
    run.check()


class _Run:
    """The pipeline running in a thread, with its progress."""

    def __init__(self, model: PipelineModel, engine: str) -> None:
        self._model = model
        self._engine = engine
        self._began = monotonic()
        self._stopping = Event()
        self._failed: list[BaseException] = []
        self._work: Thread | None = None
        self._reported = Event()
        self.observed: Observed
        self.documents: dict[str, Any] | None = None  # to which views can be added
        self._run: Callable[[], object]
        self._stop: Callable[[], None] = self._stopping.set

    @contextmanager
    def going(self) -> Iterator[None]:
        """Run the engine while the block runs."""
        with ExitStack() as stack:
            if self._engine == "embedded":
                self._prepare_embedded(stack)
            else:
                self._prepare_spark()
            self._work = Thread(target=self._keep, daemon=True)
            self._work.start()
            try:
                yield
            finally:
                self.stop()

    def _prepare_embedded(self, stack: ExitStack) -> None:
        from axlog.runtime.embedded import Runner

        def report(progress: Progress) -> None:
            if progress.batch:
                self._reported.set()

        runner = Runner(self._model, on_progress=report)
        stack.callback(runner.close)
        self.observed = live_page.observed(runner)
        self.documents = live_page.documents(runner)
        self._run, self._stop = runner.run, runner.stop

    def _prepare_spark(self) -> None:
        engine = spark_engine()
        # Beside the documents, to be removed with them.
        kept = self._model.settings.model_copy(update={"checkpoint": "out/checkpoint"})
        self._model = self._model.model_copy(update={"settings": kept})
        shown, take = live_page.reported(self._model, "spark")
        shown.activity = "starting Spark"
        self.observed = shown

        def report(document: str, batch: Any) -> None:
            take(document, batch)
            shown.activity = ""
            self._reported.set()

        self._run = lambda: engine.run(
            self._model,
            on_report=report,
            outlook=live_page.POSSIBLE,
            quick=True,
            stopping=self._stopping,
        )

    def _keep(self) -> None:
        for again in range(_TRIES):
            try:
                self._run()
            except BaseException as error:
                # On a busy machine Spark gives up on its workers after ten seconds. Nothing is
                # lost: try again.
                is_slow = not self.has_started and "failed to connect back" in str(error)
                if is_slow and again + 1 < _TRIES and not self._stopping.is_set():
                    continue
                self._failed.append(error)
            return

    def stop(self) -> None:
        """Finish the current batch and stop."""
        self._stop()
        if self._work is not None:
            self._work.join()

    @property
    def has_started(self) -> bool:
        """Whether the engine has processed a message."""
        return self._reported.is_set()

    @property
    def is_over(self) -> bool:
        return self._work is not None and not self._work.is_alive()

    @property
    def activity(self) -> str:
        """Describe the start of the engine, while there is nothing else to show."""
        if self.has_started:
            return f"engine {self._engine}"
        passed = monotonic() - self._began
        if self._engine == "embedded":
            return f"reading the first documents, {passed:.0f} s"
        return f"starting Spark, {passed:.0f} s: Java first, then its Python workers"

    def check(self) -> None:
        """Raise the error that the engine failed with."""
        for error in self._failed:
            if isinstance(error, AxlogError):
                raise error
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise PipelineError(
                "AX868",
                f"the engine {self._engine} failed: {reason}",
                advice="run `axlog doctor --spark`; `axlog demo --engine embedded` needs no Spark;"
                " --directory D keeps the log in D/out/run.log",
            ) from error
