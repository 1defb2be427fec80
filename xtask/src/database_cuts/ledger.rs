//! The transactions that a database under load commits, and the one state that it may have after
//! each: so what was read from it says how many it holds, and that it holds nothing else.
//!
//! Each moves one unit between two accounts and notes itself, all in one transaction. Which
//! accounts, and what is noted, follows from its number. Pure.

use model::random::mix;

/// Their rows are on many pages of the database.
const ACCOUNTS: u64 = 2000;
/// So much of a row is no balance.
const FILLER_BYTES: usize = 200;

/// What a client of both databases is given first.
pub(super) fn schema() -> String {
    let mut text = String::from(
        "CREATE TABLE account(id INTEGER PRIMARY KEY, balance INTEGER, filler TEXT);\n\
         CREATE TABLE note(n INTEGER PRIMARY KEY, x TEXT);\n\
         CREATE INDEX note_x ON note(x);\nBEGIN;\n",
    );
    for id in 0..ACCOUNTS {
        let filler = "f".repeat(FILLER_BYTES);
        text.push_str(&format!("INSERT INTO account VALUES ({id}, 0, '{filler}');\n"));
    }
    text.push_str("COMMIT;\n");
    text
}

/// Transaction `n`, from 1 on.
pub(super) fn transaction(n: u64) -> String {
    let [from, to] = accounts(n);
    format!(
        "BEGIN; UPDATE account SET balance = balance - 1 WHERE id = {from}; \
         UPDATE account SET balance = balance + 1 WHERE id = {to}; \
         INSERT INTO note VALUES ({n}, '{}'); COMMIT;\n",
        note(n)
    )
}

/// What [`transactions`] reads.
pub(super) const READ: &str = "SELECT 'a ' || id || ' ' || balance FROM account ORDER BY id; \
                               SELECT 'n ' || n || ' ' || x FROM note ORDER BY n;";

/// How many transactions a database holds that answered [`READ`] with `text`.
///
/// # Errors
/// What it holds that is not their state, or that they are fewer or more than may be.
pub(super) fn transactions(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let found = text.lines().filter(|line| line.starts_with("n ")).count() as u64;
    if !(least..=most).contains(&found) {
        return Err(format!("{found} transactions, not {least} to {most}"));
    }
    let expected = state(found);
    let differs = text.lines().zip(expected.lines()).find(|(is, should)| is != should);
    match differs {
        Some((is, should)) => Err(format!("`{is}`, not `{should}`, of {found} transactions")),
        None if text.lines().count() != expected.lines().count() => {
            Err(format!("{} lines, not {}", text.lines().count(), expected.lines().count()))
        }
        None => Ok(found),
    }
}

/// What a database answers after `n` transactions.
fn state(n: u64) -> String {
    let mut balances = vec![0_i64; ACCOUNTS as usize];
    for [from, to] in (1..=n).map(accounts) {
        balances[from as usize] -= 1;
        balances[to as usize] += 1;
    }
    let balances = balances.iter().enumerate().map(|(id, balance)| format!("a {id} {balance}\n"));
    balances.chain((1..=n).map(|n| format!("n {n} {}\n", note(n)))).collect()
}

fn accounts(n: u64) -> [u64; 2] {
    [mix(2 * n) % ACCOUNTS, mix(2 * n + 1) % ACCOUNTS]
}

fn note(n: u64) -> String {
    (0..4).map(|at| format!("{:016x}", mix(n ^ (at + 1) << 40))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_state_after_a_transaction_is_accepted() {
        let text = state(30);
        assert_eq!(transactions(&text, 30, 31), Ok(30));
        assert_eq!(transactions(&text, 0, 30), Ok(30));
        assert!(transactions(&text, 31, 99).unwrap_err().contains("30 transactions, not 31"));
        assert!(transactions(&text, 0, 29).is_err());
        // The balances of one state and the notes of another.
        let notes = text.find("n 1 ").unwrap();
        let older = state(29);
        let torn = format!("{}{}", &older[..older.find("n 1 ").unwrap()], &text[notes..]);
        assert!(transactions(&torn, 0, 99).is_err());
        let other = text.replacen("n 7 ", "n 8 ", 1);
        assert!(transactions(&other, 0, 99).is_err());
        let shorter: String = text.lines().skip(1).map(|line| format!("{line}\n")).collect();
        assert!(transactions(&shorter, 0, 99).is_err());
    }
}
