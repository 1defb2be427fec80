// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The recorder inside of the kernel: events are reduced to sums where they happen, so none is lost
 * and none is copied. `cargo xtask bpf` builds it; the Rust side is src/trace/in_kernel.rs. Each
 * program is optional: a kernel that refuses one leaves the others.
 */
#include "accesses.h"
#include "block.h"
#include "cpu.h"
#include "files.h"
#include "hits.h"
#include "memory.h"
#include "threads.h"

char LICENSE[] SECTION("license") = "Dual MIT/GPL";

/* What this was built from; see xtask/src/bpf.rs. */
const char BUILT_FROM[] SECTION("source") = STAMP;
