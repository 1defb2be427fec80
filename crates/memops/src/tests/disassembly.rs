//! What the disassemblies of live code must show:
//! each method's own instruction, in its loop.

use crate::{DisassembleError, Family, Instruction, find, methods};

fn loop_texts(name: &str) -> Vec<String> {
    listing(name).into_iter().filter(|line| line.in_loop).map(|line| line.text).collect()
}

fn listing(name: &str) -> Vec<Instruction> {
    find(name).unwrap().disassemble().unwrap()
}

#[test]
fn the_char_loop_moves_one_byte_by_one_load_and_one_store() {
    let texts = loop_texts("char");
    assert_eq!(texts.iter().filter(|text| text.contains(", byte [")).count(), 1, "{texts:?}");
    assert_eq!(texts.iter().filter(|text| text.starts_with("mov byte [")).count(), 1, "{texts:?}");
    assert_eq!(texts.len(), 4, "{texts:?}");
}

#[test]
fn string_methods_show_their_instruction() {
    for (name, instruction) in
        [("rep-movsb", "rep movs"), ("rep-movsq", "rep movs"), ("rep-stosb", "rep stos")]
    {
        let texts = loop_texts(name);
        assert!(texts.len() == 1 && texts[0].starts_with(instruction), "{name}: {texts:?}");
    }
}

#[test]
fn non_temporal_loops_store_past_the_caches_and_fence() {
    for (name, register, vectors) in
        [("sse2-nt", "xmm", 4), ("avx2-nt", "ymm", 4), ("avx512-nt-prefetch", "zmm", 2)]
    {
        let texts = loop_texts(name);
        let stores =
            texts.iter().filter(|text| text.contains("movnt") && text.contains(register)).count();
        assert_eq!(stores, vectors, "{name}: {texts:?}");
        assert_eq!(
            name.ends_with("prefetch"),
            texts.iter().any(|text| text.starts_with("prefetchnta"))
        );
        assert!(listing(name).iter().any(|line| line.text == "sfence" && !line.in_loop));
    }
}

#[test]
fn every_listing_is_whole_and_ends_in_a_way_out() {
    for method in methods().iter().filter(|method| method.family() != Family::Neon) {
        let lines = method.disassemble().unwrap();
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        // The C library may use instructions that the decoder lacks (seen: kmovq in memset); our
        // loops must not.
        let whole =
            method.family() == Family::Libc || !texts.iter().any(|text| text.contains("unknown"));
        assert!(whole, "{}: {texts:?}", method.name());
        assert!(
            texts.iter().any(|text| *text == "ret" || text.starts_with("jmp")),
            "{}",
            method.name()
        );
        assert!(lines.iter().all(|line| !line.bytes.is_empty()));
    }
}

#[test]
fn the_c_library_shows_the_variant_that_runs_not_a_jump_to_it() {
    for name in ["memcpy", "memset"] {
        assert!(!loop_texts(name).is_empty(), "{name}: {:?}", listing(name));
    }
}

#[test]
fn code_of_another_architecture_is_an_error() {
    assert_eq!(
        find("neon").unwrap().disassemble(),
        Err(DisassembleError::NoCode { method: "neon" })
    );
}
