from wpk.build import KernelResources
from wpk.build.resources import parse_ptxas_log

LOG = """\
unit.cu(3): warning #177-D: variable "Used 99 registers" was declared but never referenced
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_90a'
ptxas info    : Function properties for first
ptxas         .     432 bytes stack frame, 40 bytes spill stores, 36 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 432 bytes cumulative stack size, 2048 bytes smem
ptxas info    : Compile time = 43.148 ms
ptxas info    : Compiling entry function 'second' for 'sm_90a'
ptxas info    : Function properties for second
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
"""


def test_reads_every_kernel_of_a_log() -> None:
    assert parse_ptxas_log(LOG) == {
        "first": KernelResources(32, 2048, 432, 40, 36),
        "second": KernelResources(10, 0, 0, 0, 0),
    }


def test_tells_spilling_kernels_from_others() -> None:
    kernels = parse_ptxas_log(LOG)
    assert kernels["first"].spills
    assert not kernels["second"].spills


def test_a_stack_frame_alone_is_no_spill() -> None:
    assert not KernelResources(32, 0, 400, 0, 0).spills


def test_leaves_out_a_kernel_whose_report_is_cut_off() -> None:
    cut = LOG[: LOG.index("ptxas info    : Used 10")]
    assert list(parse_ptxas_log(cut)) == ["first"]


def test_an_empty_log_reports_nothing() -> None:
    assert parse_ptxas_log("") == {}
