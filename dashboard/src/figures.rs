//! How numbers, durations and long names are written. Pure; the same on both sides.

use chrono::{DateTime, Utc};

/// A count with thousands set apart by a thin space.
pub fn count(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut written = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if value < 0 {
        written.push('−');
    }
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            written.push('\u{202f}');
        }
        written.push(digit);
    }
    written
}

/// A rate or ratio with as many decimals as its size needs.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        "0".into()
    } else if size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// A share of one as per cent: four nines must not be rounded to a hundred.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if share >= 1.0 || share <= 0.0 {
        return format!("{value:.0}\u{202f}%");
    }
    let decimals = if share > 0.999 {
        3
    } else if share > 0.9 {
        2
    } else {
        1
    };
    let unit = 10_f64.powi(decimals);
    let floored = (value * unit).floor() / unit;
    format!(
        "{floored:.*}\u{202f}%",
        usize::try_from(decimals).unwrap_or(2)
    )
}

/// Seconds in the two largest units that matter: `340 ms`, `4.2 s`, `3 min 10 s`, `2 h 5 min`, `3 d 4 h`.
pub fn duration(seconds: f64) -> String {
    let space = '\u{202f}';
    let size = seconds.abs();
    if size == 0.0 {
        return format!("0{space}s");
    }
    if size < 0.001 {
        return format!("<\u{202f}1{space}ms");
    }
    if size < 1.0 {
        return format!("{:.0}{space}ms", size * 1_000.0);
    }
    if size < 10.0 {
        return format!("{size:.1}{space}s");
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive and saturating"
    )]
    let whole = size.round() as u64;
    let two = |large: u64, large_unit: &str, small: u64, small_unit: &str| {
        if small == 0 {
            format!("{large}{space}{large_unit}")
        } else {
            format!("{large}{space}{large_unit} {small}{space}{small_unit}")
        }
    };
    match whole {
        0..60 => format!("{whole}{space}s"),
        60..3_600 => two(whole / 60, "min", whole % 60, "s"),
        3_600..86_400 => two(whole / 3_600, "h", whole % 3_600 / 60, "min"),
        _ => two(whole / 86_400, "d", whole % 86_400 / 3_600, "h"),
    }
}

/// The largest unit only, for "12 s ago".
pub fn short_duration(seconds: f64) -> String {
    let size = seconds.abs();
    if size < 1.0 {
        return duration(size);
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive and saturating"
    )]
    let whole = size.floor() as u64;
    let (value, unit) = match whole {
        0..60 => (whole, "s"),
        60..3_600 => (whole / 60, "min"),
        3_600..86_400 => (whole / 3_600, "h"),
        _ => (whole / 86_400, "d"),
    };
    format!("{value}\u{202f}{unit}")
}

/// Bytes in powers of 1024.
pub fn bytes(size: i64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "shown with two digits")]
    let value = size as f64;
    let (value, unit) = match size {
        i64::MIN..1_024 => return format!("{size}\u{202f}B"),
        1_024..1_048_576 => (value / 1_024.0, "KiB"),
        1_048_576..1_073_741_824 => (value / 1_048_576.0, "MiB"),
        _ => (value / 1_073_741_824.0, "GiB"),
    };
    format!("{value:.1}\u{202f}{unit}")
}

/// Seconds from one moment to another.
pub fn seconds_between(from: DateTime<Utc>, to: DateTime<Utc>) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "milliseconds of a few years")]
    let milliseconds = (to - from).num_milliseconds() as f64;
    milliseconds / 1_000.0
}

/// The exact moment, for titles and copies.
pub fn exact(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S%.3f UTC").to_string()
}

/// The moment as a table shows it before hydration.
pub fn moment(at: DateTime<Utc>) -> String {
    at.format("%-d %b %H:%M:%S").to_string()
}

/// Shortened in the middle: the head says which server, the tail which document.
pub fn middle(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most || most < 3 {
        return text.to_owned();
    }
    let head = most / 2;
    let tail = most - head - 1;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - tail).collect();
    format!("{start}…{end}")
}

/// `sha256:1f2e3d4c…9a8b`: enough to compare by eye.
pub fn digest(digest: &str) -> String {
    let bare = digest.strip_prefix("sha256:").unwrap_or(digest);
    if bare.len() <= 14 || !bare.is_ascii() {
        return middle(bare, 14);
    }
    format!("{}…{}", &bare[..8], &bare[bare.len() - 4..])
}

/// `UNSUBSCRIBE_UNKNOWN` as words: "unsubscribe unknown".
pub fn words(constant: &str) -> String {
    constant.replace('_', " ").to_lowercase()
}

/// `TombstoneCheck` as words: "tombstone check".
pub fn camel_words(name: &str) -> String {
    name.chars().enumerate().fold(
        String::with_capacity(name.len() + 2),
        |mut words, (place, letter)| {
            if letter.is_uppercase() && place > 0 {
                words.push(' ');
            }
            words.extend(letter.to_lowercase());
            words
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(100_000), "100\u{202f}000");
        assert_eq!(count(-1_234_567), "−1\u{202f}234\u{202f}567");
    }

    #[test]
    fn a_share_below_one_never_reads_as_a_hundred() {
        assert_eq!(percent(0.999_999), "99.999\u{202f}%");
        assert_eq!(percent(1.0), "100\u{202f}%");
        assert_eq!(percent(0.5), "50.0\u{202f}%");
        assert_eq!(percent(0.0), "0\u{202f}%");
    }

    #[test]
    fn durations_take_the_two_units_that_matter() {
        let cases = [
            (0.0, "0 s"),
            (0.0002, "< 1 ms"),
            (0.034, "34 ms"),
            (4.21, "4.2 s"),
            (61.0, "1 min 1 s"),
            (7_200.0, "2 h"),
            (100_000.0, "1 d 3 h"),
        ];
        for (seconds, written) in cases {
            assert_eq!(duration(seconds).replace('\u{202f}', " "), written);
        }
        assert_eq!(short_duration(3_700.0).replace('\u{202f}', " "), "1 h");
    }

    #[test]
    fn long_names_keep_both_ends_and_their_characters() {
        assert_eq!(middle("docs:///team/übersicht.md", 11), "docs:…ht.md");
        assert_eq!(middle("short", 11), "short");
        assert_eq!(digest("sha256:0123456789abcdef0123"), "01234567…0123");
        assert_eq!(digest("ééééééééééééééééééé"), "ééééééé…éééééé");
    }

    #[test]
    fn constants_become_words() {
        assert_eq!(words("UNSUBSCRIBE_UNKNOWN"), "unsubscribe unknown");
        assert_eq!(camel_words("TombstoneCheck"), "tombstone check");
    }
}
