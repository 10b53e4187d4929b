"""What tests share, importable as ``support``: nothing in here is a test.

* `support.problems`: problems for templates and libraries, and what builds them
* `support.numbers`: operands that are hard on arithmetic, and what must come out
* `support.networks`: ONNX models, whole networks and single nodes
* `support.plans`: plans, tuning stores and searches that take no time
* `support.devices`: stand-ins for GPUs, arrays in their memory, processes
* `support.launches`: kernels that use what a launch can have, and what they must give
* `support.hopper`: small kernels that use what sm_90 has, each with its exact numbers
* `support.machine_code`: what the compiler made of a kernel
* `support.faults`: faults planted in headers and graph passes, which checks must find

Networks and candidates that benchmarks use as well are in ``benchmarks/subjects``.
"""
