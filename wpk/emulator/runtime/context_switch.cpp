#include "context_switch.h"

// The switch ends in an indirect jump, not in `ret`: the 32 lanes of a warp resume at the same address,
// which the branch predictor then knows, while the return stack would mispredict every time.
asm(R"(
.text
.p2align 4
.globl wpk_emulator_switch
.hidden wpk_emulator_switch
.type wpk_emulator_switch, @function
wpk_emulator_switch:
  popq %rcx
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  pushq %rcx
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %rcx
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  jmp *%rcx
.size wpk_emulator_switch, . - wpk_emulator_switch

.p2align 4
.globl wpk_emulator_fiber_entry
.hidden wpk_emulator_fiber_entry
.type wpk_emulator_fiber_entry, @function
wpk_emulator_fiber_entry:
  andq $-16, %rsp
  subq $8, %rsp
  jmp wpk_emulator_fiber_main
.size wpk_emulator_fiber_entry, . - wpk_emulator_fiber_entry
)");
