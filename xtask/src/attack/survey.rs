//! Mutants of surveys, compared in every form that `compare` has.
//!
//! The fixture is changed at random depths; the second side is another mutant or the fixture
//! itself.

use std::path::Path;

use testkit::Random;

use super::judge::Form;
use super::mutate::{self, chance, pick};
use super::stage::{AttackStage, Held, text, words};

/// One pair of mutants, compared.
pub(super) fn attack(stage: &AttackStage, random: &mut Random, directory: &Path) -> Held {
    let [a, b, out] = ["a.json", "b.json", "out"].map(|name| directory.join(name));
    for path in [&a, &b] {
        let per_mille = *pick(random, &[0, 5, 20, 200]);
        let mut bytes = mutate::json(random, &stage.survey, per_mille).to_string().into_bytes();
        if chance(random, 10) {
            mutate::bytes(random, &mut bytes);
        }
        std::fs::write(path, bytes)?;
    }
    let [a, b, out] = [&a, &b, &out].map(|path| text(path));
    let (arguments, form) = match random.below(6) {
        0 => (words(["compare", a, b]), Form::Text),
        1 => (words(["compare", "--json", a, b]), Form::Json),
        2 => (words(["compare", "--markdown", a, b]), Form::Text),
        3 => (words(["compare", "--html", out, a, b]), Form::Text),
        4 => (words(["compare", "--fail-if", "worse:5%", a, b]), Form::Text),
        _ => (words(["compare", "--first", a, a, a, a, "--second", b, b, b, b]), Form::Text),
    };
    stage.attack(&arguments, form).map(drop)
}
