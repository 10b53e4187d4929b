"""A launch's configuration and parameters, as the driver reads them."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from wpk.device.launch_form import Parameters, configuration
from wpk.errors import LaunchError
from wpk.execution import BoundLaunch, Pointer, TensorMap
from wpk.launch import COOPERATIVE, EARLY_LAUNCH

driver = pytest.importorskip("cuda.bindings.driver", reason="needs cuda-bindings (extra gpu)")

CLUSTER_DIMENSION, PROGRAMMATIC_STREAM_SERIALIZATION = 4, 6
"""Numbers of cuda.h."""


def launch(
    cluster: tuple[int, int, int] = (1, 1, 1), attributes: tuple[str, ...] = ()
) -> BoundLaunch:
    return BoundLaunch("d", "k", (8, 6, 4), (32, 2, 3), cluster, 4096, (), attributes)


def said(config: Any) -> dict[int, bytes]:
    """First twelve bytes of every attribute's value, by its number."""
    return {int(each.id): bytes(each.value.pad[:12]) for each in config.attrs}


def test_a_plain_launch_has_no_attributes() -> None:
    config = configuration(driver, launch(), 0x1230)
    assert (config.gridDimX, config.gridDimY, config.gridDimZ) == (8, 6, 4)
    assert (config.blockDimX, config.blockDimY, config.blockDimZ) == (32, 2, 3)
    assert (config.sharedMemBytes, int(config.hStream)) == (4096, 0x1230)
    assert (config.numAttrs, config.attrs) == (0, [])


def test_clusters_and_early_launch_are_attributes() -> None:
    config = configuration(driver, launch((4, 3, 1), (EARLY_LAUNCH,)), 0)
    assert config.numAttrs == 2
    words = {number: [value[at] for at in (0, 4, 8)] for number, value in said(config).items()}
    assert words == {CLUSTER_DIMENSION: [4, 3, 1], PROGRAMMATIC_STREAM_SERIALIZATION: [1, 0, 0]}


def test_a_cooperative_launch_is_an_attribute() -> None:
    config = configuration(driver, launch(attributes=(COOPERATIVE,)), 0)
    words = {number: value[0] for number, value in said(config).items()}
    number = int(driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
    assert words == {number: 1}


def test_refuses_attributes_that_it_does_not_know() -> None:
    with pytest.raises(LaunchError, match="'persisting', which this version does not know"):
        configuration(driver, launch(attributes=("persisting",)), 0)


def test_parameters_are_pointers_to_values_of_their_size() -> None:
    parameters = Parameters("k", (Pointer(2**63 + 5), -7, 2**31 - 1))
    pointers = (ctypes.c_void_p * 3).from_address(parameters.address)
    assert ctypes.c_uint64.from_address(pointers[0]).value == 2**63 + 5
    assert ctypes.c_int32.from_address(pointers[1]).value == -7
    assert ctypes.c_int32.from_address(pointers[2]).value == 2**31 - 1


@pytest.mark.parametrize("size", [2**31, -(2**31) - 1])
def test_refuses_sizes_that_are_no_int32(size: int) -> None:
    with pytest.raises(LaunchError, match=f"k is given {size}, which is no int32"):
        Parameters("k", (size,))


def test_refuses_tensor_maps_that_cannot_be_made() -> None:
    with pytest.raises(LaunchError, match="box: 257"):
        Parameters("k", (TensorMap(0, 2, (72, 500), (160,), (64, 257), 128),))
