//! Problems of desired state as conditions of the object that they are about.

use std::collections::HashMap;

use super::draft::Draft;
use crate::{
    desired::{Problem, ProblemReason, Severity},
    manifest::{ObjectId, Violation},
};

/// Problems by object.
pub struct Problems<'a>(HashMap<&'a ObjectId, Vec<&'a Problem>>);

impl<'a> Problems<'a> {
    pub fn of(problems: &'a [Problem]) -> Self {
        let mut by_object: HashMap<&ObjectId, Vec<&Problem>> = HashMap::new();
        for problem in problems {
            by_object.entry(&problem.object).or_default().push(problem);
        }
        Self(by_object)
    }

    pub fn about(&self, id: &ObjectId) -> &[&'a Problem] {
        self.0.get(id).map_or(&[], Vec::as_slice)
    }
}

/// The status of an object that cannot be used as it was written.
pub fn unusable(violations: &[Violation]) -> Draft {
    let messages: Vec<String> = violations
        .iter()
        .map(|violation| {
            format!(
                "{}: {}; {}",
                violation.field, violation.message, violation.fix
            )
        })
        .collect();
    Draft::stalled("InvalidSpec", messages.join(" | "))
}

/// The status of an object with an error, if it has one.
pub fn error(problems: &[&Problem]) -> Option<Draft> {
    let mut errors = problems
        .iter()
        .filter(|problem| problem.reason.severity() == Severity::Error);
    let first = errors.next()?;
    let mut messages = vec![sentence(first)];
    messages.extend(errors.map(|problem| sentence(problem)));
    let message = messages.join(" | ");
    // Another operator is at work; everything else waits for a person.
    Some(if first.reason == ProblemReason::AddressNotPublished {
        Draft::reconciling(first.reason.as_str(), message)
    } else {
        Draft::stalled(first.reason.as_str(), message)
    })
}

/// Adds the warnings: the object is used, and not as it was meant.
pub fn warn(draft: &mut Draft, problems: &[&Problem]) {
    for problem in problems {
        if problem.reason.severity() == Severity::Warning {
            let kind = match problem.reason {
                ProblemReason::UriAmbiguous => "UriAmbiguous",
                ProblemReason::ModesDiffer => "ModesDiffer",
                ProblemReason::SigningSecretWeak => "SigningSecretWeak",
                _ => "NotActedOn",
            };
            draft.add(kind, problem.reason.as_str(), sentence(problem));
        }
    }
}

fn sentence(problem: &Problem) -> String {
    format!("{}: {}; {}", problem.field, problem.message, problem.fix)
}
