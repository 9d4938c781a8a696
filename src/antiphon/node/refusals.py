"""Scenarios that real processes on one machine cannot play."""

from antiphon.errors import ConfigurationError
from antiphon.protocols.registry import families, family_of
from antiphon.scenario.model import Cut, Delay, Gone, Loss, Scenario, Skew, Slow


def refuse(scenario: Scenario) -> None:
    """`ConfigurationError` if the scenario needs a simulation."""
    sockets = family_of(scenario).sockets
    if sockets is None:
        played = " and ".join(name for name, family in families().items() if family.sockets is not None)
        raise ConfigurationError(
            f"protocol {scenario.protocol!r} runs in the simulator only; antiphon run plays {played}"
        )
    for key, problem in sockets.problems(scenario):
        raise ConfigurationError(f"{key}: {problem}" if key else problem)
    if scenario.options.literal:
        raise ConfigurationError("options.literal: errata as printed run in the simulator only")
    for i, fault in enumerate(scenario.fault):
        if isinstance(fault, Cut | Delay | Loss | Slow | Skew):
            kind = type(fault).__name__.lower()
            raise ConfigurationError(
                f"fault[{i}].kind: {kind!r} needs a simulated network, or clock; see antiphon simulate"
            )
        if isinstance(fault, Gone):
            raise ConfigurationError(
                f"fault[{i}].kind: 'gone' is simulated only; real connections tell it by themselves"
            )
    for i, workload in enumerate(scenario.workload):
        if workload.replies or workload.answers != "none":
            raise ConfigurationError(f"workload[{i}]: replies and answers are played in the simulator only")
