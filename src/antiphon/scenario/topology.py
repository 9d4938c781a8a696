"""Sites of processes, and the paths between them."""

from collections.abc import Iterator

from antiphon.scenario.model import Lognormal, Path, Scenario, Uniform, typical


def paths_between(scenario: Scenario) -> dict[tuple[str, str], Path]:
    """The path between each two processes at connected sites, in both directions."""
    processes = {site.name: site.processes for site in scenario.site}
    return {
        direction: path
        for path in scenario.path
        for a in processes[path.between[0]]
        for b in processes[path.between[1]]
        for direction in ((a, b), (b, a))
    }


def distances_from(scenario: Scenario, process: str) -> dict[str, int]:
    """The one-way distance of each other process in nanoseconds: the median latency."""
    paths, near = paths_between(scenario), scenario.network.latency
    return {
        other: typical(paths[process, other].latency if (process, other) in paths else near)
        for other in scenario.processes
        if other != process
    }


def topology_problems(scenario: Scenario, *, sites: bool) -> Iterator[tuple[str, str]]:
    """Problems, as (key, message); `sites`: whether the protocol uses sites."""
    if (scenario.site or scenario.path) and not sites:
        yield (
            "site" if scenario.site else "path",
            f"sites and paths have no effect with {scenario.protocol}",
        )
    at: dict[str, str] = {}
    for i, site in enumerate(scenario.site):
        if site.name in [other.name for other in scenario.site[:i]]:
            yield f"site[{i}].name", f"{site.name!r} names two sites"
        for name in site.processes:
            if name not in scenario.processes:
                yield f"site[{i}].processes", f"unknown process {name!r}"
            if name in at:
                yield f"site[{i}].processes", f"{name} is also at site {at[name]}, or named twice"
            at[name] = site.name
    yield from _path_problems(scenario)


def _path_problems(scenario: Scenario) -> Iterator[tuple[str, str]]:
    sites, joined = [site.name for site in scenario.site], set[frozenset[str]]()
    for i, path in enumerate(scenario.path):
        for name in path.between:
            if name not in sites:
                yield f"path[{i}].between", f"unknown site {name!r} (sites: {', '.join(sites) or 'none'})"
        ends = frozenset(path.between)
        if len(ends) < 2 or ends in joined:
            yield f"path[{i}].between", "must be two sites that no other path connects"
        joined.add(ends)
        if not 0 <= path.loss <= 1:
            yield f"path[{i}].loss", f"{path.loss} is not a share between 0 and 1"
        if isinstance(path.latency, Uniform) and path.latency.low > path.latency.high:
            yield f"path[{i}].latency.low", "is above high"
        if isinstance(path.latency, Lognormal) and not 0 <= path.latency.sigma <= 10:
            yield f"path[{i}].latency.sigma", "must be between 0 and 10"
