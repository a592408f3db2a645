//! Errors as sentences: a cause chain in one line, for logs and conditions.

use std::error::Error;

/// The error and what caused it, outermost first, joined by colons. A source that only repeats what
/// was said already is left out.
pub fn chain(error: &dyn Error) -> String {
    let mut sentence = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !sentence.contains(&said) {
            sentence.push_str(": ");
            sentence.push_str(&said);
        }
        source = cause.source();
    }
    sentence
}
