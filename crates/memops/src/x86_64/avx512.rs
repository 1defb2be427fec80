//! The vector loops with 64-byte registers, one cache line each.
//! `vzeroupper` for the same reason as with AVX2.

vector_loops! {
    bytes: 64, register: "zmm", move: "vmovdqu64", aligned: "vmovdqa64", stream: "vmovntdq",
    block: 128,
    at: [("0", "0"), ("1", "64")], lines: ["256", "320"],
    zero: [
        "vpxorq zmm0, zmm0, zmm0", "vpxorq zmm1, zmm1, zmm1", "vpxorq zmm2, zmm2, zmm2", "vpxorq zmm3, zmm3, zmm3"
    ],
    add: [
        "vpaddq zmm0, zmm0, zmm4", "vpaddq zmm1, zmm1, zmm5", "vpaddq zmm2, zmm2, zmm6", "vpaddq zmm3, zmm3, zmm7"
    ],
    end: ["vzeroupper"]
}
