//! Lengths of time as manifests write them: `60s`, `5m`, `1h30m`, `250ms`.
//!
//! In: the text of a field. Out: a duration above zero and at most [`Duration::MAX`], so that no interval arithmetic behind
//! it divides by zero or overflows. The same bounds stand in the schema for the API server.

use std::{borrow::Cow, fmt, str::FromStr, time};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A length of time from a manifest: Go's notation, units `h`, `m`, `s`, `ms`, above zero, at most 366 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(time::Duration);

/// Why a text is no duration; each message says what is right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("`{0}` is not a duration; write a number and a unit such as 60s, 5m, 1h30m or 250ms")]
    Syntax(String),
    #[error("a duration of zero means never and always; write one above zero, such as 30s")]
    Zero,
    #[error("`{0}` is longer than a year; write at most 8784h")]
    TooLong(String),
}

impl Duration {
    /// A leap year: longer than any interval that is meant, short enough for 64-bit nanoseconds.
    pub const MAX: time::Duration = time::Duration::from_hours(366 * 24);

    /// `seconds` as a duration; zero becomes one second and the bound [`Self::MAX`] holds. Made for constants.
    pub const fn from_secs(seconds: u64) -> Self {
        let max = Self::MAX.as_secs();
        let bounded = if seconds > max { max } else { seconds };
        Self(time::Duration::from_secs(if bounded == 0 {
            1
        } else {
            bounded
        }))
    }

    pub const fn get(self) -> time::Duration {
        self.0
    }

    /// Half of it: what a poll interval is when only a staleness bound is given. Never below a millisecond.
    #[must_use]
    pub fn half(self) -> Self {
        Self((self.0 / 2).max(time::Duration::from_millis(1)))
    }
}

impl From<Duration> for time::Duration {
    fn from(value: Duration) -> Self {
        value.0
    }
}

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let syntax = || DurationError::Syntax(text.chars().take(32).collect());
        let too_long = || DurationError::TooLong(text.chars().take(32).collect());
        let mut rest = text;
        let mut millis: u64 = 0;
        if rest.is_empty() {
            return Err(syntax());
        }
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return Err(syntax());
            }
            let (number, tail) = rest.split_at(digits);
            let unit_length = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
            let (unit, tail) = tail.split_at(unit_length);
            let unit_millis: u64 = match unit {
                "h" => 3_600_000,
                "m" => 60_000,
                "s" => 1_000,
                "ms" => 1,
                _ => return Err(syntax()),
            };
            let part = number
                .parse::<u64>()
                .ok()
                .and_then(|n| n.checked_mul(unit_millis))
                .ok_or_else(too_long)?;
            millis = millis.checked_add(part).ok_or_else(too_long)?;
            rest = tail;
        }
        match time::Duration::from_millis(millis) {
            time::Duration::ZERO => Err(DurationError::Zero),
            long if long > Self::MAX => Err(too_long()),
            fits => Ok(Self(fits)),
        }
    }
}

impl fmt::Display for Duration {
    /// Below two minutes in seconds, as people write bounds (`60s`, `90s`); above in hours, minutes and seconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        if !millis.is_multiple_of(1_000) {
            return write!(f, "{millis}ms");
        }
        let seconds = millis / 1_000;
        if seconds < 120 {
            return write!(f, "{seconds}s");
        }
        for (amount, unit) in [
            (seconds / 3600, "h"),
            (seconds / 60 % 60, "m"),
            (seconds % 60, "s"),
        ] {
            if amount > 0 {
                write!(f, "{amount}{unit}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Duration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // `format: duration` makes it a CEL duration, so that rules compare two of them as they are.
        json_schema!({
            "type": "string",
            "format": "duration",
            "pattern": "^([0-9]+(h|m|s|ms))+$",
            "maxLength": 32,
            "x-kubernetes-validations": [{
                "rule": "self > duration('0s') && self <= duration('8784h')",
                "message": "the duration is out of range; write one above zero and at most 8784h, such as 30s or 5m"
            }]
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, millis) in [
            ("60s", 60_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("250ms", 250),
            ("1m1s1ms", 61_001),
        ] {
            assert_eq!(
                text.parse::<Duration>().unwrap().get().as_millis(),
                millis,
                "{text}"
            );
        }
    }

    #[test]
    fn refuses_the_rest_and_says_what_is_right() {
        for text in ["", "60", "5 m", "-5s", "1d", "s", "1.5h", "5m3", "５s"] {
            assert_eq!(
                text.parse::<Duration>(),
                Err(DurationError::Syntax(text.to_owned())),
                "{text}"
            );
        }
        assert_eq!("0s".parse::<Duration>(), Err(DurationError::Zero));
        assert_eq!(
            "8785h".parse::<Duration>(),
            Err(DurationError::TooLong("8785h".to_owned()))
        );
        assert!(matches!(
            "99999999999999999999h".parse::<Duration>(),
            Err(DurationError::TooLong(_))
        ));
        assert!(
            "60".parse::<Duration>()
                .unwrap_err()
                .to_string()
                .contains("60s, 5m, 1h30m")
        );
    }

    #[test]
    fn what_it_writes_it_reads_again() {
        for text in [
            "60s", "90s", "2m", "1h30m", "8784h", "250ms", "1500ms", "3h3s",
        ] {
            let duration: Duration = text.parse().unwrap();
            assert_eq!(duration.to_string(), text);
        }
    }
}
