//! The vector loops with 16-byte registers.
//! Every x86-64 has them, so they are the ones that never are absent.

vector_loops! {
    bytes: 16, register: "xmm", move: "movdqu", aligned: "movdqa", stream: "movntdq", block: 64,
    at: [("0", "0"), ("1", "16"), ("2", "32"), ("3", "48")], lines: ["256"],
    zero: ["pxor xmm0, xmm0", "pxor xmm1, xmm1", "pxor xmm2, xmm2", "pxor xmm3, xmm3"],
    add: ["paddq xmm0, xmm4", "paddq xmm1, xmm5", "paddq xmm2, xmm6", "paddq xmm3, xmm7"],
    end: []
}
