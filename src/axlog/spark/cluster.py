"""A standalone cluster from the pip package: masters and workers as processes of this machine.

For tests, for trying out a cluster, and for machines with only the package installed. It uses the
Java of sessions. Each process leads a process group, so that its children (executors, Python
workers) can be stopped with it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from axlog.spark.java import prepare_environment
from axlog.spark.quick_start.classes import archive_options
from axlog.spark.session import QUICK


def spark_class(
    role: str, options: Sequence[str], log: Path, *, quick: bool = False
) -> subprocess.Popen[bytes]:
    """Start `Master` or `Worker` with its options; its output goes to the log.

    `quick` starts faster, as in `session`.
    """
    prepare_environment()
    import pyspark

    home = Path(pyspark.__file__).parent
    name = f"org.apache.spark.deploy.{role.lower()}.{role}"
    fast = [*QUICK, *archive_options(writes=False)] if quick else []
    environment = {
        **({"SPARK_DAEMON_JAVA_OPTS": " ".join(fast)} if fast else {}),
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with log.open("ab") as output:
        return subprocess.Popen(
            [home / "bin" / "spark-class", name, "--webui-port", "0", *options],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
