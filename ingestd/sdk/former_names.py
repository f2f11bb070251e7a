"""Names of the contract as of release 0.1.0. They work in one more release, with a `DeprecationWarning`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

FORMER_METHODS: Mapping[str, str] = {"settled": "acknowledge", "again": "reset"}
"""Methods of `Connector`: the present name by the former one."""
FORMER_CLASSES: Mapping[str, str] = {"Settlement": "Acknowledgement", "SettleLater": "AcknowledgeLater"}
FORMER_TEST_FUNCTIONS: Mapping[str, str] = {"settlement": "acknowledgement"}


def join_former_methods(connector: type) -> None:
    """Give the class both names of each method that it overrides, whichever it was written with.

    The runtime calls the present name. A subclass that calls the former name of `super()` reaches the same function.
    """
    for former, present in FORMER_METHODS.items():
        definer = next(one for one in connector.__mro__ if former in vars(one) or present in vars(one))
        if present not in vars(definer):
            _warn(f"{connector.__module__}.{connector.__qualname__} overrides {former}(); rename it to {present}().", 5)
            setattr(connector, present, vars(definer)[former])
        elif definer is connector and former not in vars(connector):
            setattr(connector, former, vars(connector)[present])


def present_name(module: str, former: str, names: Mapping[str, str]) -> str:
    """Return the present name of an attribute of a module, with a warning.

    Raises:
        AttributeError: the module has no attribute of that name and had none.
    """
    if former not in names:
        raise AttributeError(f"module {module!r} has no attribute {former!r}")
    _warn(f"{module}.{former} is now {names[former]}; import it by that name.", 4)
    return names[former]


def _warn(sentence: str, level: int) -> None:
    warnings.warn(
        f"{sentence} The release after this one no longer has the former name.", DeprecationWarning, stacklevel=level
    )
