//! Outcomes and marks as shapes: colour is never the only carrier.

use leptos::prelude::*;

/// What became of a read, for drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Class of bar and shape.
    pub class: &'static str,
    pub word: &'static str,
    /// What it means, for the legend.
    pub meaning: &'static str,
    /// Path in a box of 12 by 12.
    pub path: &'static str,
}

pub const OUTCOMES: [Outcome; 7] = [
    Outcome {
        class: "accepted",
        word: "accepted",
        meaning: "a new version",
        path: "M6 1a5 5 0 1 0 0 10a5 5 0 1 0 0-10z",
    },
    Outcome {
        class: "unchanged",
        word: "unchanged",
        meaning: "read again, the same",
        path: "M6 1a5 5 0 1 0 0 10a5 5 0 1 0 0-10zM6 3.400a2.600 2.600 0 1 1 0 5.200a2.600 2.600 0 1 1 0-5.200z",
    },
    Outcome {
        class: "stale",
        word: "stale",
        meaning: "fenced off, changed nothing",
        path: "M2.400 1L6 4.600L9.600 1L11 2.400L7.400 6L11 9.600L9.600 11L6 7.400L2.400 11L1 9.600L4.600 6L1 2.400z",
    },
    Outcome {
        class: "not_found",
        word: "not found",
        meaning: "the server says it is gone",
        path: "M6 .8L11.200 6L6 11.200L.8 6z",
    },
    Outcome {
        class: "refused",
        word: "refused",
        meaning: "the server would not",
        path: "M1.200 1.200h9.600v9.600H1.200zM2.800 5.200v1.600h6.400V5.200z",
    },
    Outcome {
        class: "failed",
        word: "failed",
        meaning: "no answer; the old value stays",
        path: "M6 .8L11.600 11H.4z",
    },
    Outcome {
        class: "flight",
        word: "in flight",
        meaning: "not answered yet",
        path: "M2 1.200L11 6L2 10.800z",
    },
];

impl Outcome {
    /// By the API's word; absent means in flight.
    pub fn of(word: Option<&str>) -> Self {
        let class = word.unwrap_or("flight");
        OUTCOMES
            .into_iter()
            .find(|outcome| outcome.class == class)
            .unwrap_or(OUTCOMES[5])
    }
}

/// A mark's shape and word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkShape {
    pub class: &'static str,
    pub word: &'static str,
    pub path: &'static str,
}

pub const MARKS: [MarkShape; 5] = [
    MarkShape {
        class: "notification",
        word: "notification",
        path: "M.8 1h10.400L6 11z",
    },
    MarkShape {
        class: "gap",
        word: "gap",
        path: "M1 2L4 2L6 6L4 10H1L3 6zM7 2h3l2 4l-2 4H7L9 6z",
    },
    MarkShape {
        class: "opened",
        word: "opened",
        path: "M2 1h2v10H2zM5 3.500L10.500 6L5 8.500z",
    },
    MarkShape {
        class: "closed",
        word: "closed",
        path: "M8 1h2v10H8zM7 3.500L1.500 6L7 8.500z",
    },
    MarkShape {
        class: "tombstoned",
        word: "tombstoned",
        path: "M2 11V5a4 4 0 0 1 8 0v6zM5.300 4v1.200H4.200v1.300h1.100V9h1.400V6.500h1.100V5.200H6.700V4z",
    },
];

impl MarkShape {
    pub fn of(kind: &str) -> Option<Self> {
        MARKS.into_iter().find(|mark| mark.class == kind)
    }
}

/// A shape for words beside it.
#[component]
pub fn Glyph(class: &'static str, path: &'static str) -> impl IntoView {
    view! {
        <svg class=format!("glyph {class}") viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
            <path d=path fill-rule="evenodd" />
        </svg>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_own_shape() {
        for (place, outcome) in OUTCOMES.iter().enumerate() {
            assert!(
                OUTCOMES[place + 1..]
                    .iter()
                    .all(|other| other.path != outcome.path && other.word != outcome.word)
            );
        }
        assert_eq!(Outcome::of(None).word, "in flight");
        assert_eq!(Outcome::of(Some("not_found")).word, "not found");
    }
}
