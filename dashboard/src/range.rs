//! Windows of time that a reader can choose: a word in the address bar, seconds in the API.

/// A window that ends now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub word: &'static str,
    pub seconds: u32,
}

/// Windows of the overview; samples are folded to at most 240 points in each.
pub const OVERVIEW: &[Range] = &[
    Range {
        word: "15m",
        seconds: 900,
    },
    Range {
        word: "1h",
        seconds: 3_600,
    },
    Range {
        word: "6h",
        seconds: 21_600,
    },
    Range {
        word: "24h",
        seconds: 86_400,
    },
    Range {
        word: "7d",
        seconds: 604_800,
    },
];

/// Windows of a resource's picture: from one read to a day of them.
pub const PICTURE: &[Range] = &[
    Range {
        word: "1m",
        seconds: 60,
    },
    Range {
        word: "5m",
        seconds: 300,
    },
    Range {
        word: "15m",
        seconds: 900,
    },
    Range {
        word: "1h",
        seconds: 3_600,
    },
    Range {
        word: "6h",
        seconds: 21_600,
    },
    Range {
        word: "24h",
        seconds: 86_400,
    },
];

impl Range {
    /// The one that the address names, or `fallback`: an unknown word must not break a pasted link.
    pub fn parse(word: Option<&str>, among: &'static [Range], fallback: &str) -> Range {
        let find = |word: &str| among.iter().find(|range| range.word == word).copied();
        word.and_then(find)
            .or_else(|| find(fallback))
            .unwrap_or(among[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_word_falls_back() {
        assert_eq!(Range::parse(Some("6h"), OVERVIEW, "1h").seconds, 21_600);
        assert_eq!(
            Range::parse(Some("6 parsecs"), OVERVIEW, "1h").seconds,
            3_600
        );
        assert_eq!(Range::parse(None, PICTURE, "5m").seconds, 300);
    }
}
