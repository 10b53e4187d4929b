"""Machine code: NVRTC, what ptxas says of a kernel, and the cache and the pool of compilers around it."""

from wpk.build.cache import KernelCache, default_cache_folder
from wpk.build.compiled import CompiledKernel
from wpk.build.leftovers import Kept, described, prune
from wpk.build.nvrtc import compiler_here, load_nvrtc
from wpk.build.pool import Compilation, CompilePool
from wpk.build.resources import KernelResources
from wpk.build.tensor_cores import count_tensor_core_instructions
