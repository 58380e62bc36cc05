# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CNI plugin ``gpufleet-alias``: a pod's interface on one secondary address of the node's NIC, without encapsulation.

The pod gets one end of a veth pair with its address as /32, a gateway 169.254.1.1 that exists only as a fixed neighbour
entry, and the MTU that the NIC has at this moment; the node gets a host route and a fixed neighbour entry for it.
Whose address it is comes from the IPAM plugin of the configuration. What was made is written down under ``records``,
one file an interface, for the accounting of traffic.

Speaks CNI 0.3.1 to 1.1.0: ADD, DEL, CHECK, GC, STATUS, VERSION. It is one file that is installed as it stands and run by
``python3 -IS``; ``installed_file`` in the module beside this one puts it together. Imports of ``socket`` and ``json`` would
take as long as the interpreter's start (measured: 7 ms each, ``signal`` 5), so their cores in C are taken directly, or numbers.
"""

from __future__ import annotations

import errno
import os

from .call import RECORDS, Call, CniError, read_all
from .ipam import ipam, program
from .plain_json import dumps, loads
from .rtnetlink import UP, Netlink, neighbour, own_address, route, set_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

VERSIONS = ("0.3.1", "0.4.0", "1.0.0", "1.1.0")
GATEWAY = "169.254.1.1"
# The node's end of every pair has the same MAC, as Azure's own plugin has it, so that the pod's entry for the gateway is fixed.
HOST_MAC = "aa:aa:aa:aa:aa:aa"


def main() -> int:
    """Answer one call of a runtime on standard output. Returns the exit status."""
    command = os.environ.get("CNI_COMMAND", "")
    version = VERSIONS[2]
    try:
        text = read_all(0)
        config = loads(text) if text.strip() or command != "VERSION" else {}
        if not isinstance(config, dict):
            raise CniError(6, "the configuration on standard input is no JSON object")
        given = config.get("cniVersion")
        if command == "VERSION":
            return answer({"cniVersion": given if given in VERSIONS else VERSIONS[-1], "supportedVersions": list(VERSIONS)})
        given = given or VERSIONS[0]  # as the specification has it for a configuration that names none
        if given not in VERSIONS:
            raise CniError(1, f"cniVersion is {given}; this plugin speaks {', '.join(VERSIONS)}")
        version = config["cniVersion"] = given
        if command not in COMMANDS:
            raise CniError(4, f"CNI_COMMAND is {command!r}; this plugin knows {', '.join(sorted(COMMANDS))} and VERSION")
        if not config.get("name") or not isinstance(config.get("ipam"), dict) or not config["ipam"].get("type"):
            raise CniError(7, "the configuration needs name and ipam.type; converge the node again")
        return answer(COMMANDS[command](config))
    except CniError as error:
        return answer({"cniVersion": version, "code": error.code, "msg": error.message, "details": error.details}, status=1)
    except Exception as error:  # a runtime wants JSON of us whatever happens; it shows this to the pod's owner
        kind = "" if isinstance(error, (OSError, ValueError)) else f"{type(error).__name__}: "
        code = 5 if isinstance(error, OSError) else 6
        return answer({"cniVersion": version, "code": code, "msg": f"gpufleet-alias {command}: {kind}{error}", "details": ""}, status=1)


def answer(document: t.Any, status: int = 0) -> int:
    if document is not None:
        os.write(1, dumps(document).encode() + b"\n")
    return status


# ADD


def add(config: dict[str, t.Any]) -> dict[str, t.Any]:
    """Wire the container; whatever fails, nothing is left behind."""
    call = Call(config)
    namespace = call.open_namespace()
    host, pod = Netlink(), entered(call, namespace)
    master = config.get("master", "eth0")
    nic = host.link(master)
    if nic is None:
        raise CniError(7, f"the interface {master} (master in the CNI configuration) does not exist; converge the node again")
    try:
        result = ipam("ADD", config)
    except CniError as error:
        raise CniError(error.code, exhaustion(config, error.message)) from error
    try:
        address = pod_address(result)
        wire(call, host, pod, namespace, nic["mtu"], address, routes(result))
        record(call, address)
    except BaseException:
        try:
            unwire(call, host)
        finally:
            ipam("DEL", config)
        raise
    finally:
        os.close(namespace)
    mac = mac_of(address)
    entry = {"address": address + "/32", "gateway": GATEWAY, "interface": 1}
    if config["cniVersion"] < "1.0.0":
        entry["version"] = "4"
    return {
        "cniVersion": config["cniVersion"],
        "interfaces": [{"name": call.host_name, "mac": HOST_MAC}, {"name": call.interface, "mac": mac, "sandbox": call.namespace}],
        "ips": [entry],
        "routes": result.get("routes") or [{"dst": "0.0.0.0/0"}],
        "dns": result.get("dns") or {},
    }


def pod_address(result: dict[str, t.Any]) -> str:
    ips = result.get("ips") or []
    if len(ips) != 1 or ":" in ips[0].get("address", ":"):
        raise CniError(100, f"IPAM gave {dumps(ips)}, where one IPv4 address is needed; leave one range set in the configuration")
    return str(ips[0]["address"]).partition("/")[0]


def routes(result: dict[str, t.Any]) -> list[str]:
    """Networks of the pod's routes, each by the gateway; a route by another gateway cannot be, as nothing else is on the link."""
    wanted = [str(item["dst"]) for item in result.get("routes") or [{"dst": "0.0.0.0/0"}]]
    return [destination for destination in wanted if ":" not in destination]


def mac_of(address: str) -> str:
    """Locally administered, one for each address."""
    return "02:67:" + ":".join(f"{int(part):02x}" for part in address.split("."))


def wire(call: Call, host: Netlink, pod: Netlink, namespace: int, mtu: int, address: str, destinations: list[str]) -> None:
    mac = mac_of(address)
    host.delete(call.host_name)  # of an ADD that was killed
    try:
        host.veth(call.host_name, HOST_MAC, call.interface, mac, mtu, namespace)
    except OSError as error:
        if error.errno == errno.EEXIST:
            raise CniError(101, f"{call.namespace} already has an interface {call.interface}") from error
        raise
    with open(f"/proc/sys/net/ipv4/conf/{call.host_name}/proxy_arp", "w") as file:
        file.write("1")
    index = host.index(call.host_name)
    host.talk([set_up(index), neighbour(index, address, mac), route(index, address, 32, scope=253)])
    inside = pod.index(call.interface)
    # The address comes first, as routes take it for their source.
    pod.talk(
        [
            own_address(inside, address),
            set_up(inside),
            neighbour(inside, GATEWAY, HOST_MAC),
            route(inside, GATEWAY, 32, scope=253),
            *(route(inside, *split(destination), gateway=GATEWAY) for destination in destinations),
        ]
    )


def entered(call: Call, namespace: int) -> Netlink:
    try:
        return Netlink(namespace)
    except OSError as error:
        raise CniError(4, f"CNI_NETNS is {call.namespace}, which is no network namespace ({error.strerror})") from error


def split(network: str) -> tuple[str, int]:
    address, _slash, length = network.partition("/")
    return address, int(length or 32)


def record(call: Call, address: str) -> None:
    """Written in one step, so that a reader finds a whole record or none."""
    os.makedirs(call.records, mode=0o755, exist_ok=True)
    status = os.stat(call.namespace)
    document = {
        "address": address,
        "container_id": call.container,
        "host_interface": call.host_name,
        "interface": call.interface,
        "namespace": call.arguments.get("K8S_POD_NAMESPACE", ""),
        "netns": call.namespace,
        "netns_inode": status.st_ino,
        "network": call.network,
        "pod": call.arguments.get("K8S_POD_NAME", ""),
        "uid": call.arguments.get("K8S_POD_UID", ""),
    }
    temporary = f"{call.records}/.{call.container}-{call.interface}.tmp"
    with open(temporary, "w") as file:
        file.write(dumps(document) + "\n")
    os.replace(temporary, call.record)


def exhaustion(config: dict[str, t.Any], said: str) -> str:
    """host-local lists every range, 9 KB for a full NIC; what helps is who has the addresses."""
    if "no IP addresses available" not in said:
        return said
    holders = sorted(
        f"{item['address']} {item['namespace'] or '-'}/{item['pod'] or item['container_id'][:12]}" for item in recorded(config)
    )
    return (
        f"all addresses of network {config['name']} are in use ({len(holders)} pods: {', '.join(holders) or 'none recorded'}); "
        "give the scale set's NIC more ipConfigurations and converge the node, or schedule fewer pods here"
    )


def recorded(config: dict[str, t.Any]) -> list[dict[str, t.Any]]:
    """The records of this network; one that cannot be read is nobody's."""
    folder = config.get("records", RECORDS)
    found: list[dict[str, t.Any]] = []
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return found
    for name in names:
        if name.endswith(".json"):
            try:
                with open(f"{folder}/{name}") as file:
                    item = loads(file.read())
            except (OSError, ValueError):
                continue
            if isinstance(item, dict) and item.get("network") == config["name"]:
                found.append(item)
    return found


# DEL


def delete(config: dict[str, t.Any]) -> None:
    """Needs neither the namespace nor a network; what is gone already is no error."""
    call = Call(config)
    # The device goes first: an address that is given out again must not have an old route.
    unwire(call, Netlink())
    ipam("DEL", config)
    return


def unwire(call: Call, host: Netlink) -> None:
    host.delete(call.host_name)
    for path in (call.record, f"{call.records}/.{call.container}-{call.interface}.tmp"):
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass


# CHECK


def check(config: dict[str, t.Any]) -> None:
    """Raise CniError for the first thing that is not as ADD left it."""
    call = Call(config)
    previous = config.get("prevResult")
    if not isinstance(previous, dict):
        raise CniError(7, "CHECK needs prevResult")
    ipam("CHECK", config)
    namespace = call.open_namespace()
    try:
        host, pod = Netlink(), entered(call, namespace)
    finally:
        os.close(namespace)
    # Plugins behind this one may have added addresses of their own.
    ours = [ip["address"].partition("/")[0] for ip in previous.get("ips", []) if ip.get("gateway") == GATEWAY]
    outside, inside = host.link(call.host_name), pod.link(call.interface)
    if outside is None or not outside["flags"] & UP:
        raise CniError(102, f"the node's interface {call.host_name} is missing or down")
    if inside is None or not inside["flags"] & UP:
        raise CniError(102, f"the container's interface {call.interface} is missing or down")
    for address in ours:
        if (inside["index"], address) not in pod.addresses():
            raise CniError(102, f"{call.interface} lacks the address {address}")
        if (outside["index"], address, 32, "") not in host.routes():
            raise CniError(102, f"the node lacks the route to {address}")
    have = pod.routes()
    if (inside["index"], GATEWAY, 32, "") not in have:
        raise CniError(102, f"the container lacks the route to {GATEWAY}")
    for destination in routes(previous):
        if (inside["index"], *split(destination), GATEWAY) not in have:
            raise CniError(102, f"the container lacks the route to {destination}")


# GC and STATUS, which CNI 1.1 brought


def collect(config: dict[str, t.Any]) -> None:
    """Remove what belongs to no attachment that the runtime still knows. Without its list nothing is removed."""
    valid = config.get("cni.dev/valid-attachments", config.get("cni.dev/attachments"))
    if not isinstance(valid, list):
        raise CniError(7, "GC needs cni.dev/valid-attachments")
    keep = {(item.get("containerID"), item.get("ifname")) for item in valid}
    host = Netlink()
    owners = {(item["container_id"], item["interface"]) for item in recorded(config)} | leased(config)
    for container, interface in sorted(owners - keep):
        os.environ.update(CNI_CONTAINERID=container, CNI_IFNAME=interface, CNI_NETNS="")
        unwire(Call(config), host)
        ipam("DEL", config)


def leased(config: dict[str, t.Any]) -> set[tuple[str, str]]:
    """Whose the leases of host-local are: it keeps a file an address with container and interface in two lines."""
    folder = os.path.join(config["ipam"].get("dataDir", "/var/lib/cni/networks"), config["name"])
    found: set[tuple[str, str]] = set()
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return found
    for name in names:
        if name[0].isdigit():
            with open(f"{folder}/{name}") as file:
                container, _line, interface = file.read().strip().partition("\n")
            if container and interface:
                found.add((container, interface.strip()))
    return found


def status(config: dict[str, t.Any]) -> None:
    """Raise CniError 50 when an ADD could not succeed."""
    master = config.get("master", "eth0")
    nic = Netlink().link(master)
    if nic is None or not nic["flags"] & UP:
        raise CniError(50, f"the interface {master} is missing or down")
    program(config["ipam"]["type"], code=50)


COMMANDS = {"ADD": add, "DEL": delete, "CHECK": check, "GC": collect, "STATUS": status}


if __name__ == "__main__":
    # At once: everything is written, and taking the interpreter down in order would take 2 ms.
    os._exit(main())
