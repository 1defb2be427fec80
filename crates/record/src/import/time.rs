//! Dates and times of day as other tools print them, as seconds since 1970.
//!
//! Without a zone they are taken as they stand: only the time between two of them matters
//! then, and the clock that is shown.

/// Seconds since 1970 of `2026-11-22T10:15:32+0000`, `2026-11-22 10:15:32`, `11/22/26
/// 10:15:32` or `11/22/2026 10:15:32 AM`; `None` for anything else.
pub fn seconds(text: &str) -> Option<u64> {
    let (text, is_afternoon) = match text.trim() {
        text if text.ends_with("AM") => (text, Some(false)),
        text if text.ends_with("PM") => (text, Some(true)),
        text => (text, None),
    };
    let zone_at = text.get(11..).and_then(|rest| rest.rfind(['+', '-']));
    let (text, zone) = zone_at.map_or((text, ""), |at| text.split_at(at + 11));
    let numbers: Vec<u64> = text
        .split(|sign: char| !sign.is_ascii_digit())
        .filter(|word| !word.is_empty())
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let [one, two, three, hour, minute, second] = numbers.try_into().ok()?;
    let (year, month, day) = match (one, two, three) {
        (year, month, day) if year > 31 => (year, month, day),
        // Some places write the day first; it shows when it cannot be a month.
        (day, month, year) if day > 12 => (year, month, day),
        (month, day, year) => (year, month, day),
    };
    let year = if year < 100 { year + 2000 } else { year };
    let hour = match is_afternoon {
        Some(true) => hour % 12 + 12,
        Some(false) => hour % 12,
        None => hour,
    };
    let plausible = (1970..3000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    // Computed only then: with other numbers it overflows.
    plausible.then(|| {
        let local = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
        local.saturating_add_signed(-offset(zone))
    })
}

/// Days since 1970 of a date of the Gregorian calendar.
fn days(year: u64, month: u64, day: u64) -> u64 {
    // The year begins in March, so that the leap day is its last one.
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day.saturating_sub(1);
    (year * 365 + year / 4 - year / 100 + year / 400 + day_of_year).saturating_sub(719_468)
}

/// Seconds east of Greenwich of `+0130`, `-05:00`; 0 for anything else.
fn offset(zone: &str) -> i64 {
    let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
    let Ok(number) = digits.parse::<i64>() else {
        return 0;
    };
    let seconds = match digits.len() {
        4 => (number / 100 * 60 + number % 100) * 60,
        2 => number * 3600,
        _ => 0,
    };
    if zone.starts_with('-') { -seconds } else { seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_the_tools_are_one_time() {
        let noon = 1_795_349_732;
        for text in [
            "2026-11-22T12:15:32+0000",
            "2026-11-22T13:15:32+0100",
            "2026-11-22T07:15:32-05:00",
            "2026-11-22 12:15:32",
            "11/22/26 12:15:32",
            "22/11/2026 12:15:32",
            "11/22/2026 12:15:32 PM",
        ] {
            assert_eq!(seconds(text), Some(noon), "{text}");
        }
        assert_eq!(seconds("11/22/2026 12:15:32 AM"), Some(noon - 12 * 3600));
        assert_eq!(seconds("1970-01-01 00:00:00"), Some(0));
        assert_eq!(seconds("2024-02-29 00:00:00"), Some(1_709_164_800));
        for text in [
            "",
            "12:15:32",
            "loop0 0.00",
            "2026-13-01 00:00:00",
            "1/2/3 4:5:6:7",
            // Numbers that overflow where a date is computed from them.
            "18446744073709551615-11-22 10:15:32",
            "2026-18446744073709551615-22 10:15:32",
            "2026-11-18446744073709551615 10:15:32",
            "2026-11-22 18446744073709551615:15:32",
            "2026-11-22 10:18446744073709551615:32",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
