//! The vector loops with 32-byte registers.
//! `vzeroupper`, for code with SSE2 is slow while upper halves are in use.

vector_loops! {
    bytes: 32, register: "ymm", move: "vmovdqu", aligned: "vmovdqa", stream: "vmovntdq", block: 128,
    at: [("0", "0"), ("1", "32"), ("2", "64"), ("3", "96")], lines: ["256", "320"],
    zero: ["vpxor ymm0, ymm0, ymm0", "vpxor ymm1, ymm1, ymm1", "vpxor ymm2, ymm2, ymm2", "vpxor ymm3, ymm3, ymm3"],
    add: ["vpaddq ymm0, ymm0, ymm4", "vpaddq ymm1, ymm1, ymm5", "vpaddq ymm2, ymm2, ymm6", "vpaddq ymm3, ymm3, ymm7"],
    end: ["vzeroupper"]
}
