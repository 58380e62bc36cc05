# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A job as the published cluster runs it: MPI over SSH between pods of different nodes, whose names are looked up once."""

from __future__ import annotations

import shlex
import time

from runtime_pod import Pods

A, B = "gpua000000", "gpua000001"
FOLDER = "/srv/mpi"
PORT = 2222
LIMIT_SECONDS = 90
ELEMENTS = 1_000_000
# Four processes add up their vectors, once before and once after the names are gone; each checks every element.
PROGRAM = f"""
import array, os, time
from mpi4py import MPI
world = MPI.COMM_WORLD
def add(round):
    given = array.array("d", [world.rank + round]) * {ELEMENTS}
    summed = array.array("d", [0.0]) * {ELEMENTS}
    world.Allreduce([given, MPI.DOUBLE], [summed, MPI.DOUBLE], op=MPI.SUM)
    expected = sum(range(world.size)) + world.size * round
    assert all(value == expected for value in summed), (world.rank, summed[0], expected)
add(1)
if world.rank == 0:
    print("first", flush=True)
deadline = time.monotonic() + {LIMIT_SECONDS}
while world.rank == 0 and not os.path.exists("{FOLDER}/names-are-gone"):
    assert time.monotonic() < deadline
    time.sleep(0.1)
world.barrier()
add(2)
if world.rank == 0:
    print("second", world.size, flush=True)
"""
SERVER = f"mkdir -p /run/sshd; exec /usr/sbin/sshd -D -e -p {PORT} -h {FOLDER}/host -o AuthorizedKeysFile={FOLDER}/key.pub -o StrictModes=no -o UsePAM=no -o PidFile=none"
AGENT = f"ssh -p {PORT} -i {FOLDER}/key -o UserKnownHostsFile={FOLDER}/known -o StrictHostKeyChecking=yes -o BatchMode=yes"


def prepare(pods: dict[str, Pods]) -> None:
    """Keys of one job, the same on both nodes, and the pods' names."""
    first = pods[A].node
    keys = "; ".join(f"ssh-keygen -q -t ed25519 -N '' -f {FOLDER}/{name}" for name in ("host", "key"))
    first.run(["sh", "-c", f"rm -rf {FOLDER}; mkdir -m 700 {FOLDER}; {keys}"])
    first.run(["sh", "-c", f'for name in worker-0 worker-1; do echo "[$name]:{PORT} $(cat {FOLDER}/host.pub)"; done > {FOLDER}/known'])
    first.run(["sh", "-c", f"cat > {FOLDER}/sum.py"], stdin=PROGRAM)
    packed = first.run(["sh", "-c", "tar -C /srv -c mpi | base64"])
    pods[B].node.run(["sh", "-c", "rm -rf /srv/mpi; base64 -d | tar -C /srv -x"], stdin=packed)
    addresses = [pods[name].addresses()["worker"] for name in (A, B)]
    for name in (A, B):
        lines = "".join(f"{address} worker-{number}\n" for number, address in enumerate(addresses))
        pods[name].node.run(["sh", "-c", f"cp /etc/hosts {FOLDER}/hosts.old; cat >> /etc/hosts"], stdin=lines)


def forget_names(pods: dict[str, Pods]) -> None:
    for name in (A, B):
        # The file is written in place: the pods have it by a bind of the node's root.
        pods[name].node.run(
            ["sh", "-c", f"cat {FOLDER}/hosts.old > /etc/hosts; ! grep -q worker /etc/hosts; touch {FOLDER}/names-are-gone"]
        )


def internet_bytes(item: Pods) -> int:
    """What was counted as internet traffic of pods."""
    return sum(count for (chain, _comment), count in item.node.counters().items() if "FORWARD" in chain)


def pod_bytes(item: Pods) -> int:
    """Bytes that went into the only pod of a node."""
    (name,) = item.left()["interfaces"]
    return int(item.node.run(["cat", f"/sys/class/net/{name}/statistics/tx_bytes"]))


def test_an_allreduce_over_ssh_between_pods_outlives_the_name_service(pods: dict[str, Pods]) -> None:
    for name in (A, B):
        pods[name].start("worker")
    prepare(pods)
    servers = [pods[name].node.start(["ctr", "task", "exec", "--exec-id", "sshd", "worker", "sh", "-c", SERVER]) for name in (A, B)]
    before = {name: internet_bytes(pods[name]) for name in (A, B)}
    moved = {name: pod_bytes(pods[name]) for name in (A, B)}
    try:
        wait_for_ssh(pods[A])
        tcp = "--mca btl tcp,self --mca mpi_yield_when_idle 1 --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0"
        job = f"mpirun --allow-run-as-root --host worker-0:2,worker-1:2 {tcp} --mca plm_rsh_agent {shlex.quote(AGENT)} python3 {FOLDER}/sum.py"
        running = pods[A].node.start(["ctr", "task", "exec", "--exec-id", "job", "worker", "timeout", str(LIMIT_SECONDS), "sh", "-c", job])
        assert running.stdout is not None
        assert running.stdout.readline() == "first\n", running.communicate(timeout=LIMIT_SECONDS)
        forget_names(pods)
        said, errors = running.communicate(timeout=LIMIT_SECONDS)
        assert said == "second 4\n", errors
    finally:
        forget_names(pods)
        for server in servers:
            server.kill()
            server.wait(timeout=LIMIT_SECONDS)
    for name in (A, B):
        assert pod_bytes(pods[name]) - moved[name] > 2 * 8 * ELEMENTS, "both vectors came over the network"
        assert internet_bytes(pods[name]) == before[name], "and none of it counts as internet traffic"


def wait_for_ssh(item: Pods) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    asked = f"for name in worker-0 worker-1; do {AGENT} $name true || exit 1; done"
    while not item.succeeds("worker", "sh", "-c", asked):
        assert time.monotonic() < deadline
        time.sleep(0.2)
